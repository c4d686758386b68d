#include "harness/process/system_call_list.h"

#include <sys/syscall.h>

#include <array>

// Known to Linux, and not to the headers of Debian 12 or Ubuntu 22.04. Numbers from 424 on are the
// same on every architecture.
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#ifndef SYS_map_shadow_stack
#define SYS_map_shadow_stack 453
#endif
#ifndef SYS_futex_wake
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

namespace rekernel {

std::span<const long> harmless_system_calls() {
  static constexpr auto calls = std::to_array<long>({
    // Descriptors and what they lead to. Which files can be opened is the sandbox's business.
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev,
        SYS_preadv2, SYS_pwritev2, SYS_lseek, SYS_sendfile, SYS_copy_file_range, SYS_openat,
        SYS_openat2, SYS_close, SYS_close_range, SYS_dup, SYS_dup3, SYS_fcntl, SYS_flock, SYS_pipe2,
        SYS_fsync, SYS_fdatasync, SYS_sync_file_range, SYS_ftruncate, SYS_truncate, SYS_fallocate,
        SYS_fadvise64, SYS_readahead, SYS_cachestat,
        // What they are called, and how large they are.
        SYS_newfstatat, SYS_fstat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_faccessat,
        SYS_faccessat2, SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_chdir, SYS_fchdir,
        SYS_umask, SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_listxattr, SYS_flistxattr,
        SYS_inotify_init1, SYS_inotify_add_watch, SYS_inotify_rm_watch,
        // The driver's and the libraries' own caches.
        SYS_mkdirat, SYS_unlinkat, SYS_renameat2, SYS_fchmod, SYS_fchmodat, SYS_utimensat,
        // Memory.
        SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_msync, SYS_mincore,
        SYS_brk, SYS_mlock, SYS_mlock2, SYS_munlock, SYS_mlockall, SYS_munlockall, SYS_memfd_create,
        SYS_membarrier, SYS_mbind, SYS_get_mempolicy, SYS_set_mempolicy,
        SYS_set_mempolicy_home_node, SYS_pkey_mprotect, SYS_pkey_alloc, SYS_pkey_free,
        SYS_map_shadow_stack, SYS_mseal,
        // Threads, and what they wait for.
        SYS_futex, SYS_futex_waitv, SYS_futex_wake, SYS_futex_wait, SYS_futex_requeue,
        SYS_set_robust_list, SYS_get_robust_list, SYS_set_tid_address, SYS_rseq, SYS_gettid,
        SYS_getcpu, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_setaffinity,
        SYS_sched_getscheduler, SYS_sched_getparam, SYS_sched_getattr, SYS_sched_get_priority_max,
        SYS_sched_get_priority_min, SYS_sched_rr_get_interval, SYS_exit, SYS_exit_group,
        SYS_restart_syscall, SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl,
        SYS_epoll_pwait, SYS_epoll_pwait2, SYS_eventfd2, SYS_signalfd4, SYS_wait4, SYS_waitid,
        // Signals that a process takes; those that it sends are looked at.
        SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending,
        SYS_rt_sigtimedwait, SYS_rt_sigsuspend, SYS_sigaltstack,
        // Time.
        SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday,
        SYS_times, SYS_timer_create, SYS_timer_settime, SYS_timer_gettime, SYS_timer_getoverrun,
        SYS_timer_delete, SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime,
        SYS_setitimer, SYS_getitimer,
        // Who and where one is.
        SYS_getpid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid,
        SYS_getresgid, SYS_getgroups, SYS_getpgid, SYS_getsid, SYS_getpriority, SYS_capget,
        SYS_uname, SYS_sysinfo, SYS_getrusage, SYS_getrlimit, SYS_getrandom,
        // Sockets that are there, and those of the Unix family: the driver listens on one of its
        // own, and asks the machine's services over others.
        SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_sendto, SYS_recvfrom,
        SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown, SYS_getsockname,
        SYS_getpeername, SYS_setsockopt, SYS_getsockopt,
#if defined(__x86_64__)
        // Older forms of the above, which newer architectures never had.
        SYS_open, SYS_creat, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_getdents, SYS_dup2,
        SYS_pipe, SYS_mkdir, SYS_rmdir, SYS_unlink, SYS_rename, SYS_renameat, SYS_chmod, SYS_poll,
        SYS_select, SYS_epoll_create, SYS_epoll_wait, SYS_eventfd, SYS_signalfd, SYS_inotify_init,
        SYS_pause, SYS_alarm, SYS_time, SYS_getpgrp, SYS_arch_prctl,
#endif
  });
  return calls;
}

}  // namespace rekernel
