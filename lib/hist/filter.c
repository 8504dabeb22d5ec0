#include "hist/filter.h"

#include <stdlib.h>

#include "base/mem.h"

void filter_add_role(struct filter *f, const char *role)
{
    f->roles = mem_resize(f->roles, f->roles_count + 1, sizeof(*f->roles));
    f->roles[f->roles_count++] = role;
}

void filter_release(struct filter *f)
{
    free(f->roles);
    *f = (struct filter){0};
}

bool filter_match(const struct filter *f, const struct message *m)
{
    bool wanted = f->roles_count == 0;

    if (f->session.p && !str_eq(f->session, m->session_id))
        return false;
    for (size_t i = 0; i < f->roles_count && !wanted; i++)
        wanted = str_eq_c(m->role_text, f->roles[i]);
    return wanted;
}
