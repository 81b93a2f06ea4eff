/**
 * The entry point of the program. The `environment-worker` command loads only the client, because
 * every environment has a process that runs this command. Every other command loads the whole
 * command line.
 */

// When the parent process ends, this process shuts down gracefully.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()

if (process.argv[2] === 'environment-worker') await import('./commands/environment-worker.ts')
else await import('./command-line.ts')
