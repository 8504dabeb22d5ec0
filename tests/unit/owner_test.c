#include "chathist/base/owner.h"

#include <grp.h>
#include <pwd.h>

#include "test.h"

#include "scratch.h"

#define OTHER_UID 65534
#define OTHER_GID 65533

/* Checks a file both ways: by its descriptor and by its path. */
static void check_fault(const char *path, enum owner allowed, const char *want)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK_STR(owner_fault(fd, allowed), want);
    CHECK_STR(owner_fault_at(path, allowed), want);
    close(fd);
}

static bool has_private_group(void)
{
    const struct passwd *user = getpwuid(geteuid());
    gid_t gid = user ? user->pw_gid : 0;
    const struct group *group = user ? getgrgid(gid) : NULL;

    return group && gid == getegid() && strcmp(group->gr_name, user->pw_name) == 0 &&
           !group->gr_mem[0];
}

TEST(modes)
{
    scratch_enter();
    scratch_put("f", "");
    check_fault("f", OWNER_USER, NULL);
    CHECK_INT(chmod("f", 0644), 0);
    check_fault("f", OWNER_USER, NULL);
    CHECK_INT(chmod("f", 0646), 0);
    check_fault("f", OWNER_USER, "others can write it (chmod go-w)");
    CHECK_INT(mkdir("d", 0700), 0);
    CHECK_INT(chmod("d", 01777), 0);
    check_fault("d", OWNER_USER_OR_ROOT, "others can write it (chmod go-w)");
    CHECK_STR(owner_fault_at("absent", OWNER_USER), NULL);
    CHECK_STR(owner_fault_at("f/absent", OWNER_USER), NULL);
    CHECK_STR(owner_fault(-1, OWNER_USER), "its owner cannot be determined");
    scratch_leave();
}

TEST(private_group)
{
    scratch_enter();
    scratch_put("f", "");
    CHECK_INT(chmod("f", 0660), 0);
    check_fault("f", OWNER_USER, has_private_group() ? NULL : "its group can write it (chmod g-w)");
    if (geteuid() == 0) {
        CHECK_INT(chown("f", 0, OTHER_GID), 0);
        check_fault("f", OWNER_USER, "its group can write it (chmod g-w)");
    }
    scratch_leave();
}

/* Only root can give files away. */
TEST(owners)
{
    if (geteuid() != 0)
        return;
    scratch_enter();
    scratch_put("roots", "");
    scratch_put("others", "");
    CHECK_INT(chmod("roots", 0644), 0);
    CHECK_INT(chmod(scratch_dir, 0755), 0);
    CHECK_INT(chown("others", OTHER_UID, OTHER_GID), 0);
    check_fault("others", OWNER_USER, "it belongs to another user");
    check_fault("others", OWNER_USER_OR_ROOT, "it belongs to another user");
    CHECK_INT(seteuid(OTHER_UID), 0);
    check_fault("others", OWNER_USER, NULL);
    check_fault("roots", OWNER_USER_OR_ROOT, NULL);
    check_fault("roots", OWNER_USER, "it belongs to another user");
    CHECK_INT(seteuid(0), 0);
    scratch_leave();
}
