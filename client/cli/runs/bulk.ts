/**
 * `baton run bulk`: cancels, retries or resumes all runs that match a filter. It shows a preview,
 * asks for confirmation, and repeats the request until no matching run is left. Exit codes: 0 every
 * run accepted the action, or none matched; 1 some run refused it, or the user did not confirm.
 */
import { Argument, type Command } from 'commander'
import { api } from '../../../protocol/api.ts'
import {
  type BulkAction,
  BulkByFilter,
  type BulkByFilterResult,
} from '../../../protocol/runs/bulk.ts'
import { connected, longClientFor } from '../connection/connection.ts'
import { givenFields, optionOf } from '../derived.ts'
import { fieldsOf } from '../fields.ts'
import { Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'

interface Flags {
  readonly yes?: true
  readonly preview?: true
  readonly json?: true
  readonly reason?: string
}
/** Maximum number of runs listed in a text preview, and of refused runs listed at the end. */
const SHOWN = { preview: 10, refused: 20 } as const

/** Adds `baton run bulk`. The other commands of the group are derived from the rows. */
export function addRunBulk(program: Command, shell: Shell): void {
  const parent = program.command('run').description('runs: start, list, control and follow runs')
  const fields = fieldsOf(api['run.count'])
  const command = connected(
    parent
      .command('bulk')
      .description('Cancel, retry or resume all runs that match the filters')
      .addArgument(
        new Argument('<action>', 'action to perform on each run').choices(
          BulkByFilter.properties.action.enum,
        ),
      ),
  )
    .option('--preview', 'only show how many runs match, and the first of them')
    .option('-y, --yes', 'change the runs without asking for confirmation')
    .option('--reason <text>', 'reason that the timelines of the runs show')
    .option('--json', 'print the answers of the service as JSON; requires --preview or --yes')
    .addHelpText(
      'after',
      '\nExamples:\n  $ baton run bulk retry --workflow-type import --failed-step load --preview\n' +
        '  $ baton run bulk cancel --created-before 2031-02-03T00:00:00Z --yes\n',
    )
  for (const field of fields) command.addOption(optionOf(field))
  command.action(
    shell.guarded(async (action: BulkAction) => {
      const flags = command.opts<Flags>()
      if (flags.json && !flags.preview && !flags.yes)
        throw new Mistake('--json requires --preview or --yes.')
      const { transport } = longClientFor(command, shell)
      const filter = givenFields(fields, command.opts())
      const ask = async (more: Pick<BulkByFilter, 'after' | 'preview'>) =>
        (await transport.call(api['run.bulk'], {
          action,
          filter,
          ...(flags.reason !== undefined && { reason: flags.reason }),
          ...more,
        })) as BulkByFilterResult
      const first = await ask({ preview: true })
      if (flags.preview && flags.json) return shell.print(JSON.stringify(first, null, 2))
      const count = showPreview(first, action, flags, shell)
      if (flags.preview || count === 0 || first.next === null) return
      if (!(await isConfirmed(action, flags, shell))) return
      await performAll(first.next, count, (after) => ask({ after }), flags, shell)
    }),
  )
}

/**
 * Shows the preview and returns the number of matching runs. For an incomplete preview (`more`),
 * this is the number counted so far, but at least 1. Returns 0 only if no run matches.
 */
function showPreview(
  { preview }: BulkByFilterResult,
  action: BulkAction,
  { yes, json }: Flags,
  shell: Shell,
): number {
  const { count = 0, more = false, runs = [] } = preview ?? {}
  if (count === 0 && !more) {
    shell.note('No run matches.')
    return 0
  }
  const number = `${more ? 'at least ' : ''}${count} ${count === 1 && !more ? 'run' : 'runs'}`
  if (!json) shell.note(`${number} to ${action}${yes ? '.' : ', oldest first:'}`)
  if (!yes)
    for (const { id, status, created_at, error_message = '' } of runs.slice(0, SHOWN.preview))
      shell.note(
        `  ${id}  ${status}  ${created_at}  ${error_message.slice(0, 60).replace(/\s+/g, ' ')}`.trimEnd(),
      )
  return Math.max(count, 1)
}

async function isConfirmed(action: BulkAction, { yes }: Flags, shell: Shell): Promise<boolean> {
  if (yes) return true
  if (!shell.confirm)
    throw new Mistake(
      'There is no terminal on which the action could be confirmed: pass --yes to perform it, or ' +
        '--preview to see which runs match.',
    )
  if (await shell.confirm(`Really ${action} them?`)) return true
  shell.note('Nothing was changed.')
  process.exitCode = 1
  return false
}

async function performAll(
  start: string,
  count: number,
  perform: (after: string) => Promise<BulkByFilterResult>,
  { json }: Flags,
  shell: Shell,
): Promise<void> {
  const bar = json ? undefined : shell.progress?.('runs')
  const results: BulkByFilterResult['results'] = []
  try {
    for (let next: string | null = start; next !== null; ) {
      const answer: BulkByFilterResult = await perform(next)
      results.push(...answer.results)
      bar?.update(Math.min(1, results.length / count), results.length)
      next = answer.next
    }
  } catch (error) {
    bar?.stop()
    shell.note(`${results.length} runs were handled before the fault.`)
    throw error
  }
  bar?.stop()
  const refused = results.filter(({ ok }) => !ok)
  if (json) shell.print(JSON.stringify({ results }, null, 2))
  else {
    for (const { run_id, error } of refused.slice(0, SHOWN.refused))
      shell.note(`  ${run_id}: ${error?.message ?? 'refused'}`)
    shell.print(`${results.length - refused.length} done, ${refused.length} refused.`)
  }
  if (refused.length > 0) process.exitCode = 1
}
