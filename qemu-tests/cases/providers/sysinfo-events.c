// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

/* Sends and receives a message, performs two operations on a semaphore, and calls vfork() three
 * times. */

#include <err.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	struct { long type; char text[4]; } message = { 1, "all" };
	struct sembuf up = { 0, 1, 0 }, down = { 0, -1, 0 };
	int queue = msgget(IPC_PRIVATE, 0600), semaphore = semget(IPC_PRIVATE, 1, 0600), i;

	if (queue < 0 || msgsnd(queue, &message, sizeof(message.text), 0) ||
	    msgrcv(queue, &message, sizeof(message.text), 0, 0) != sizeof(message.text))
		err(1, "message");
	if (semaphore < 0 || semop(semaphore, &up, 1) || semop(semaphore, &down, 1))
		err(1, "semaphore");
	if (msgctl(queue, IPC_RMID, NULL) || semctl(semaphore, 0, IPC_RMID))
		err(1, "remove");
	for (i = 0; i < 3; i++) {
		pid_t pid = vfork();

		if (!pid)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			err(1, "vfork");
	}
	return 0;
}
