/**
 * `baton env`: a short form of `environment.list`, and commands that need more than one call:
 * `shell`, `cp` and `logs`.
 */
import type { Command } from 'commander'
import { api } from '../../../protocol/api.ts'
import { addRow } from '../derived.ts'
import type { Shell } from '../shell.ts'
import { addCopy } from './copy.ts'
import { addLogs } from './logs.ts'
import { addShell } from './shell.ts'

/** Adds `baton env` to a program. */
export function addEnvironments(program: Command, shell: Shell): void {
  const parent = program
    .command('env')
    .description('Use environments: list, shell, cp, logs. ENV is the name or id of an environment')
  addRow(parent, 'environment.list', 'list', api['environment.list'], shell)
  addShell(parent, shell)
  addCopy(parent, shell)
  addLogs(parent, shell)
}
