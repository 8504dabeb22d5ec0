#include "chathist/base/owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

#include "chathist/base/buf.h"
#include "chathist/base/file.h"
#include "chathist/base/memory.h"

/* The numbers below this one are those of the system's accounts. */
#define FIRST_USER 1000
/* The state of a socket that listens, in /proc/net/tcp. */
#define LISTENING 10

/* The largest entry of the user and group databases that is read, in bytes. */
#define ENTRY_MAX ((size_t)1 << 20)

#ifdef __linux__
/* Returns false for a file system that makes up the modes it shows. The numbers are those of
 * statfs(2). FUSE is not one file system: only files with every permission, as NTFS shows them, are
 * taken as made up. */
static bool keeps_modes(const struct statfs *fs, mode_t mode)
{
    switch ((unsigned long)fs->f_type & 0xffffffffUL) {
    case 0x4d44:     /* FAT */
    case 0x2011bab0: /* exFAT */
    case 0x5346544e: /* NTFS */
    case 0x7366746e: /* NTFS3 */
    case 0x01021997: /* 9p: the drives of Windows in WSL */
    case 0x517b:     /* SMB */
    case 0xff534d42: /* CIFS */
    case 0xfe534d42: /* SMB2 */
    case 0x786f4256: /* shared folders of VirtualBox */
        return false;
    case 0x65735546: /* FUSE */
        return (mode & 0777) != 0777;
    default:
        return true;
    }
}
#endif

/* Returns whether the group is the user's private one (owner_fault). */
static bool is_private_group(gid_t gid)
{
    struct passwd user_entry, *user = NULL;
    struct group entry, *group = NULL;
    char *room[2] = {NULL, NULL};
    bool alone = false;
    int failed = ERANGE;

    for (size_t size = 2048; failed == ERANGE && size <= ENTRY_MAX; size *= 2) {
        for (int i = 0; i < 2; i++)
            room[i] = mem_resize(room[i], size, 1);
        failed = getpwuid_r(geteuid(), &user_entry, room[0], size, &user);
        if (!failed)
            failed = getgrgid_r(gid, &entry, room[1], size, &group);
    }
    if (!failed && user && group && user->pw_gid == gid)
        alone = strcmp(group->gr_name, user->pw_name) == 0;
    for (char **member = alone ? group->gr_mem : NULL; member && *member; member++)
        alone = alone && strcmp(*member, user->pw_name) == 0;
    for (int i = 0; i < 2; i++)
        free(room[i]);
    return alone;
}

static const char *fault(const struct stat *st, bool has_modes, enum owner allowed)
{
    if (st->st_uid != geteuid() && !(allowed == OWNER_USER_OR_ROOT && st->st_uid == 0))
        return "it belongs to another user";
    if (has_modes && (st->st_mode & S_IWOTH))
        return "others can write it (chmod go-w)";
    if (has_modes && (st->st_mode & S_IWGRP) && !is_private_group(st->st_gid))
        return "its group can write it (chmod g-w)";
    return NULL;
}

static const char unknown[] = "its owner cannot be determined";

const char *owner_fault(int fd, enum owner allowed)
{
    bool has_modes = true;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return unknown;
#ifdef __linux__
    struct statfs fs;

    has_modes = fstatfs(fd, &fs) < 0 || keeps_modes(&fs, st.st_mode);
#endif
    return fault(&st, has_modes, allowed);
}

const char *owner_fault_at(const char *path, enum owner allowed)
{
    bool has_modes = true;
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? NULL : unknown;
#ifdef __linux__
    struct statfs fs;

    has_modes = statfs(path, &fs) < 0 || keeps_modes(&fs, st.st_mode);
#endif
    return fault(&st, has_modes, allowed);
}

/* ---- who listens ---- */

static unsigned long parse_number(struct str digits, int base)
{
    struct buf text = BUF_INIT(BUF_SMALL);
    unsigned long n;

    buf_add_str(&text, digits);
    n = strtoul(buf_c(&text), NULL, base);
    buf_release(&text);
    return n;
}

/* Returns whether it is a loopback address, or the one for all addresses. The digits are those of
 * 32-bit words in the machine's own order; of an IPv6 address the last counts: `::`, `::1`,
 * `::ffff:127.0.0.1`. */
static bool is_local(struct str address)
{
    uint32_t last;

    if (address.n < 8)
        return false;
    last = ntohl((uint32_t)parse_number((struct str){address.p + address.n - 8, 8}, 16));
    return last <= 1 || last >> 24 == 127;
}

/* A line: number, local address, remote address, state, two or three words about queues and timers,
 * uid. */
static bool is_foreign_line(struct str line, unsigned port, uid_t *uid)
{
    struct str address, local;

    str_word(&line);
    local = str_word(&line);
    address = str_cut(&local, ':');
    if (parse_number(local, 16) != port || !is_local(address))
        return false;
    str_word(&line);
    if (parse_number(str_word(&line), 16) != LISTENING)
        return false;
    for (int i = 0; i < 3; i++)
        str_word(&line);
    *uid = (uid_t)parse_number(str_word(&line), 10);
    return *uid != geteuid() && *uid >= FIRST_USER;
}

bool owner_foreign_listener(unsigned port, uid_t *uid)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    bool found = false;

    for (size_t i = 0; i < sizeof tables / sizeof *tables && !found; i++) {
        struct buf text = BUF_INIT(SIZE_MAX);
        int fd = open(tables[i], O_RDONLY | O_CLOEXEC);
        struct str rest;

        if (fd >= 0 && file_read_all(fd, &text) < 0)
            buf_clear(&text);
        file_close(fd);
        rest = buf_str(&text);
        while (!found && rest.n > 0)
            found = is_foreign_line(str_cut(&rest, '\n'), port, uid);
        buf_release(&text);
    }
    return found;
}
