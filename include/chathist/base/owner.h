/*
 * owner - who may have written a file, or runs a server on this machine.
 *
 * Decides whether a file, or a server on this machine, is trusted. Some files act for the user:
 * configuration names commands, and a history is sent to a model. They are used only if no other
 * user can have written them.
 *
 * A file is trusted if it belongs to the user, or also to root where the caller allows that, and if
 * others cannot write it. A file that its group can write is trusted only if that group is the
 * user's private one: it has the user's name, is the user's primary group, and has no other member.
 * On file systems that have no modes (FAT, NTFS, SMB, 9p), the owner alone counts.
 */
#ifndef CHATHIST_BASE_OWNER_H
#define CHATHIST_BASE_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

enum owner { OWNER_USER, OWNER_USER_OR_ROOT };

/* Returns NULL if the open file or directory is trusted, else the reason as the end of a message,
 * such as "it belongs to another user". Check the descriptor that is then read: a path may name
 * another file the next time. */
const char *owner_fault(int fd, enum owner allowed);
/* Like owner_fault, for a file that is not opened here, such as a program; links are followed. A
 * file that does not exist has no fault. */
const char *owner_fault_at(const char *path, enum owner allowed);

/* Returns true, with the number of the user in *uid, if a user other than this one listens on the
 * port of this machine's loopback addresses. The accounts of the system (below 1000, root among
 * them) do not count: only root can start something as one of them. Linux says who listens
 * (proc_net_tcp(5)); returns false elsewhere. */
bool owner_foreign_listener(unsigned port, uid_t *uid);

#endif
