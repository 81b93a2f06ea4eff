/** Runs `baton environment-worker` without loading the server. */
import { Command } from 'commander'
import { addEnvironmentWorker } from '../../client/cli/environment-worker.ts'
import { processShell } from '../../client/cli/shell.ts'
import { oneLineErrors } from '../../client/cli/usage.ts'

const program = new Command('baton')
addEnvironmentWorker(program, processShell(process.env))
oneLineErrors(program)
await program.parseAsync()
