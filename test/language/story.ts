/**
 * The stories of `cases/`: a workflow, what happens to its run line by line, and below each line
 * the resulting timeline.
 *
 * A sentence: the behavior.
 *
 *     workflow {"steps": […]}          may continue on indented lines
 *     child {"steps": […]}             another workflow, which `loop` steps refer to as `child`
 *     start {"input": {…}}
 *       step.started a {"kind":"action"}
 *     job a completed {"r":1}          or failed, cancelled, taken (by a worker)
 *     turn a completed {"text":"hi"}   the turn of an agent step; or opened, failed, cancelled,
 *                                      unknown (it cannot start)
 *     signal go {…} · event type {…} · complete a {…} · answer a true · expire a · dismiss a
 *     after 10s · cancel {…} · resume · retry {…}
 *     = completed {"a":{"r":1}}        the final state of the run
 *
 * Ids and times, which differ between runs, are omitted. A workflow that cannot be saved shows its
 * faults below `workflow`.
 */
import { Compile } from 'typebox/compile'
import type { Definition } from '../../protocol/access/directory.ts'
import { parseDuration } from '../../protocol/common.ts'
import { explain } from '../../protocol/rules/schema-faults/explain.ts'
import { type RunEvent, timelineTypes } from '../../protocol/runs/events.ts'
import { checkSpec, Spec } from '../../protocol/workflows/spec.ts'
import { World } from './world.ts'

const HIDDEN: ReadonlySet<string> = new Set([
  'step',
  'wait_id',
  'job_id',
  'interaction_id',
  'run_id',
  'subject',
  'deadline',
  'expires_at',
  'retry_at',
  'source',
  'definition_id',
  'definition_version',
  'worker_instance_id',
  'source_event_id',
  'status',
  'turn_id',
  'session_id',
  'agent_turn_id',
])
const compiled = Compile(Spec)
type Values = Record<string, unknown>

export function lineOf({
  type,
  step,
  payload = {},
}: Pick<RunEvent, 'step' | 'payload'> & { readonly type: string }): string {
  const shown = JSON.stringify(payload, (key, value: unknown) =>
    HIDDEN.has(key) ? undefined : value,
  )
  return `  ${type}${step === undefined ? '' : ` ${step}`}${shown === '{}' ? '' : ` ${shown}`}`
}
/** Returns the state of a run as a line of a story. */
const standing = ({
  status,
  result,
  error_type,
  error_message,
}: {
  readonly status: string
  readonly result?: Values
  readonly error_type?: string
  readonly error_message?: string
}): string =>
  `= ${status}` +
  (result
    ? ` ${JSON.stringify(result, (key, value: unknown) => (key === 'run_id' ? undefined : value))}`
    : '') +
  (error_type === undefined ? '' : ` ${error_type}: ${error_message ?? ''}`)

/**
 * Parses a story without its results. Returns its title and its lines, with continuation lines
 * joined.
 */
export function read(text: string): {
  readonly title: string
  readonly head: string
  readonly lines: readonly string[]
} {
  const [title = '', ...rest] = text.split('\n')
  const lines: string[] = []
  let head = ''
  for (const line of rest) {
    if (/^(workflow|child) /.test(line)) lines.push(line)
    else if (/^ {4}/.test(line)) lines.push(`${lines.pop() ?? ''}${line.trim()}`)
    else if (line !== '' && !line.startsWith(' ') && !line.startsWith('=')) lines.push(line)
    if (/^(workflow|child) |^ {4}/.test(line)) head += `${line}\n`
  }
  return { title, head, lines }
}

const faultsOf = (spec: unknown): string[] =>
  (compiled.Check(spec) ? checkSpec(spec, 'spec') : explain(Spec, spec, 'spec')).map(
    ({ field, message }) => `  refused ${field}: ${message}`,
  )

/** Runs a story. Returns its whole text with the actual results. */
export function tell(text: string): string {
  const { title, head, lines } = read(text)
  const world = new World()
  const body: string[] = []
  const definitions: Record<string, Definition> = {}
  let spec: Spec | undefined
  for (const line of lines) {
    const [, verb = '', rest = ''] = /^(\w+) ?(.*)$/.exec(line) ?? []
    if (verb === 'workflow' || verb === 'child') {
      const given = JSON.parse(rest) as Spec
      const faults = faultsOf(given)
      if (faults.length > 0) return `${title}\n\n${head}${faults.join('\n')}\n`
      if (verb === 'workflow') spec = given
      else definitions['child'] = { id: 'wfd_child', version: 1, spec: given }
      continue
    }
    const before = world.events.length
    const refused =
      verb === 'start'
        ? world.start(spec as Spec, valuesOf(rest), definitions)
        : perform(world, verb, rest)
    body.push(
      line,
      ...(refused
        ? [
            `  refused ${refused.refused}${refused.message === undefined ? '' : `: ${refused.message}`}`,
          ]
        : []),
    )
    for (const event of world.events.slice(before))
      if (timelineTypes.has(event.type)) body.push(lineOf(event))
  }
  if (world.events.length > 0) body.push(standing(world.record))
  return `${title}\n\n${head}${body.join('\n')}\n`
}
const valuesOf = (text: string): Values => (text === '' ? {} : (JSON.parse(text) as Values))

function perform(world: World, verb: string, rest: string): ReturnType<World['send']> {
  const [name = '', ...words] = rest.split(' ')
  const more = words.join(' ')
  switch (verb) {
    case 'job':
      return void world.job(name, words[0] ?? '', valuesOf(words.slice(1).join(' ')))
    case 'turn':
      return void world.turn(name, words[0] ?? '', valuesOf(words.slice(1).join(' ')))
    case 'signal':
      return world.send('run.signal', { name, ...(more && { payload: valuesOf(more) }) })
    case 'event':
      return world.send('event.deliver', {
        source_event_id: `event ${world.events.length}`,
        event_type: name,
        event: valuesOf(more),
        meta: {},
      })
    case 'complete':
      return world.send('run.signal', { step_key: name, ...(more && { result: valuesOf(more) }) })
    case 'answer':
      return void world.answer(name, 'completed', JSON.parse(more))
    case 'expire':
      return void world.answer(name, 'expired', undefined)
    case 'dismiss':
      return void world.answer(name, 'cancelled', undefined)
    case 'after':
      return void world.pass(parseDuration(name) ?? 0)
    case 'cancel':
    case 'resume':
    case 'retry':
      return world.send(`run.${verb}`, valuesOf(rest))
    default:
      throw new Error(`a story does not know ${verb}`)
  }
}
