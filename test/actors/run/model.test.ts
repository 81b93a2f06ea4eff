/**
 * Random runs under random commands, with a queue that is only remembered. Whatever happens, in whatever order, late or
 * twice: the history stays legal, the state is what the history says, and nothing is left without something to wait for.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { fold } from '../../../actors/actor.ts'
import { run } from '../../../actors/run/run.ts'
import type { Note, RunState } from '../../../actors/run/state.ts'
import type { RunEvent, RunStep, WorkflowRun } from '../../../protocol/api/runs.ts'
import { patch } from '../../../protocol/patch.ts'
import { checkSpec, type Spec } from '../../../protocol/spec.ts'
import { given, START } from '../../given.ts'
import type { After, Run } from './story.ts'

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const duration = fc.constantFrom('0s', '5s', '30s')
const kinds = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom({ action_name: 'x' }, { action_name: 'y', parameters: { n: '${{ input.n }}', bad: '${{ input.bad - 1 }}' } }).map((config) => ({ kind: 'action' as const, config })) },
  { weight: 2, arbitrary: duration.map((duration) => ({ kind: 'sleep' as const, config: { duration } })) },
  { weight: 3, arbitrary: fc.record({ event_type: fc.constantFrom('signal.a', 'signal.b'), match: maybe(fc.constant({ n: 1 })), payload_mapping: maybe(fc.constant({ m: 'event.n - 1' })) }, { requiredKeys: ['event_type'] }).map((config) => ({ kind: 'wait_for_event' as const, config })) },
  { weight: 2, arbitrary: fc.record({ targets: fc.constantFrom(['ada'], ['ada', '${{ input.bad }}']), expires_in: maybe(fc.constant('20s')), on_expiry: maybe(fc.constant('continue' as const)) }).map((config) => ({ kind: 'interaction' as const, config: { protocol: 'request_approval' as const, ...config } })) },
)
const steps = fc.array(fc.tuple(kinds, maybe(fc.constantFrom('input.n == 1', 'input.n != 1', '[1] - 1 > 0')), maybe(fc.record({ max_attempts: fc.integer({ min: 1, max: 3 }), delay: duration })), maybe(duration)), { minLength: 1, maxLength: 5 })
/** A valid spec, as it comes over the wire. */
const spec = fc.tuple(steps, maybe(fc.constantFrom('1m', '10m'))).map(([parts, wall]) => {
  const list = parts.map(([kind, condition, retry, timeout], i) => ({ ...kind, ...(i % 2 === 0 && { id: `s${i}` }), if: condition, retry, timeout: timeout && { duration: timeout } }))
  return JSON.parse(JSON.stringify({ steps: list, limits: wall && { wall_clock_timeout: wall } })) as Spec
})
const job = fc.integer({ min: 1, max: 6 }).map((n) => `job_${n}`)
/** Commands: some fit the moment, most do not. `last`: about the newest job, whichever that is. */
const command = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.boolean(), job, fc.constantFrom('completed', 'completed', 'failed', 'cancelled')).map(([last, job_id, outcome]) => ({ name: 'job.settled', last, input: { job_id, outcome, attempt: 1, result: { r: 1 } } })) },
  { weight: 2, arbitrary: fc.tuple(fc.boolean(), job, fc.integer({ min: 1, max: 3 }), fc.constantFrom('failure', 'lease_expired')).map(([last, job_id, attempt, reason]) => ({ name: 'job.retried', last, input: { job_id, attempt, max_attempts: 3, reason } })) },
  { weight: 6, arbitrary: fc.record({ name: fc.constantFrom('a', 'b'), payload: fc.constantFrom({ n: 1 }, { n: 2 }, { n: [] }), idempotency_key: fc.constantFrom('', '', 'k', 'l') }).map((input) => ({ name: 'run.signal', input })) },
  { weight: 1, arbitrary: fc.constantFrom('s0', '1', 's2', 'nope').map((step_key) => ({ name: 'run.signal', input: { step_key, result: { by: 'hand' } } })) },
  { weight: 4, arbitrary: fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 4 }), fc.constantFrom('completed', 'cancelled', 'expired')).map(([last, n, status]) => ({ name: 'interaction.settled', last, input: { interaction_id: `iact_${n}`, signal_name: 'a', status, value: true } })) },
  { weight: 2, arbitrary: fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 4 }), fc.constantFrom('interaction.opened', 'interaction.responded')).map(([last, n, name]) => ({ name, last, input: { interaction_id: `iact_${n}`, protocol: 'request_approval', targets: ['ada'], title: 'Go?', response: 1, responder: { user_id: 'ada' } } })) },
  { weight: 6, arbitrary: fc.constantFrom(0, 1, 5_000, 30_000, 61_000).map((later) => ({ name: 'wake', input: {}, later })) },
  { weight: 3, arbitrary: fc.constantFrom({}, {}, { wall_clock_extend_seconds: 60 }).chain((input) => fc.constantFrom('run.retry', 'run.recover').map((name) => ({ name, input }))) },
  { weight: 1, arbitrary: fc.constant({ name: 'run.resume', input: {} }) },
  { weight: 1, arbitrary: fc.constantFrom('run.cancel', 'run.start').map((name) => ({ name, input: { reason: 'r' } })) },
) as fc.Arbitrary<{ name: string; input: Record<string, unknown>; last?: boolean; later?: number }>

const wire = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T
const frozen = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(frozen)
  }
  return value
}
const same = (found: unknown, wanted: unknown, what: string) => {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`)
}
const must = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what)
}
const ends = new Set(['run.completed', 'run.failed', 'run.cancelled'])

/** What a history must satisfy, whoever made it. */
function checkHistory(history: readonly RunEvent[]): void {
  const begun = new Set<string>()
  const over = new Set<string>()
  const stored = new Set<string>()
  const called = new Set<unknown>()
  let open: unknown
  let ended = false
  let status = ''
  for (const { type, step = '', payload, private: note, run } of history) {
    if (ended) must(type === 'run.resumed' && payload?.recovery_action !== undefined, `${type} after the end`)
    ended = ends.has(type)
    if (ended) must(payload?.status === run?.status && type === `run.${run?.status}`, 'an end without its status')
    if (type === 'step.started' || type === 'step.skipped') must(!over.has(step), `${type} of ${step}, which is over`)
    if (type === 'step.started') {
      must(!begun.has(step), `${step} began twice`)
      begun.add(step)
    } else if (type.startsWith('step.') && type !== 'step.skipped') must(begun.has(step) && !over.has(step), `${type} of ${step}, which is not under way`)
    if (type === 'step.completed' || type === 'step.skipped') over.add(step)
    if (type === 'wait.opened') {
      must(open === undefined, 'two waits at once')
      open = payload?.wait_id
    } else if (type.startsWith('wait.') && payload?.wait_id !== undefined) {
      must(open === payload.wait_id, `${type} of a wait that is not open`)
      open = undefined
    }
    if (ended) must(open === undefined, 'the run ended with an open wait')
    if (type === 'action.called') called.add(payload?.job_id)
    else if (type.startsWith('action.')) must(called.has(payload?.job_id), `${type} of a job that was not called`)
    if (type === 'action.completed' || type === 'action.failed') called.delete(payload?.job_id)
    const { store, take } = (note ?? {}) as Note
    if (store) stored.add(store.id)
    if (take !== undefined) must(stored.delete(take), `signal ${take} consumed twice or never sent`)
    if (type === 'run.suspended') must(status === 'running', `suspended while ${status}`)
    if (type === 'run.resumed') must(status === 'suspended' || payload?.recovery_action !== undefined, `resumed while ${status}`)
    status = run?.status ?? status
  }
}

/** What must hold whenever no command is under way. */
function checkRest(scene: Run): void {
  const { record, engine, steps, signals } = scene.state
  const { wait } = engine
  if (ends.has(`run.${record.status}`)) {
    must(wait === undefined && scene.deadline() === undefined, 'an ended run waits')
    must(record.completed_at !== undefined && (record.status === 'failed') === (record.error_type !== undefined), 'an end without its fields')
    return
  }
  must(record.status === 'suspended' && wait !== undefined, `nothing to wait for while ${record.status}`)
  must(wait?.kind === 'worker' || wait?.kind === 'event' || wait?.kind === 'interaction' || scene.deadline() !== undefined, 'a timer without a time')
  must(!record.cancel_requested || wait?.kind === 'worker', 'a cancelled run waits for something that is no job')
  must(steps[wait?.step ?? '']?.status === 'suspended' && Object.values(steps).filter(({ status }) => status === 'suspended' || status === 'running').length === 1, 'not exactly one step under way')
  if (wait?.kind === 'worker') must(scene.ask('job_spec', { job_id: wait.job_id }) !== null, 'a job without its parameters')
  if (wait?.kind === 'event' && !wait.match) must(!signals.some(({ name }) => `signal.${name}` === wait.event_type), 'waits for a signal that is there')
}

/** One command, and everything that must hold after it. */
function perform(scene: Run, { name, input, last, later }: { name: string; input: Record<string, unknown>; last?: boolean; later?: number }): After {
  const wait = scene.state.engine.wait
  const interaction_id = last && wait?.kind === 'interaction' && name !== 'interaction.opened' ? wait.interaction_id : input.interaction_id
  const job_id = last && wait?.kind === 'worker' ? wait.job_id : input.job_id
  frozen(scene.state)
  const after = scene.when(name, name.startsWith('job.') ? { ...input, job_id } : name.startsWith('interaction.') ? { ...input, interaction_id } : input, { at: scene.at + (later ?? 7) })
  for (const event of after.events) must(event.type in run.evolve, `no evolve arm for ${event.type}`)
  must(after.events.length <= 320, 'too many events for one command')
  const end = after.events.findIndex(({ type }) => ends.has(type))
  must(end < 0 || end === after.events.length - 1, 'something follows the end')
  checkRest(after)
  if (name === 'job.settled') must(after.when(name, { ...input, job_id }).events.length === 0, 'a repeated end of a job changed something')
  if (name === 'interaction.settled') must(after.when(name, { ...input, interaction_id }).events.length === 0, 'a repeated end of an interaction changed something')
  for (const tell of after.tells) must(tell.to.kind === 'interaction' ? tell.to.id.startsWith('iact_') : tell.to.id === '0.default' && tell.name.startsWith('queue.'), 'told somebody else')
  const withdrawn = after.tells.filter((tell) => tell.name === 'interaction.withdraw').map(({ to }) => to.id)
  const now = after.state.engine.wait
  const still = wait?.kind === 'interaction' && now?.kind === 'interaction' && now.interaction_id === wait.interaction_id
  if (wait?.kind === 'interaction' && !still && name !== 'interaction.settled') must(withdrawn.includes(wait.interaction_id), 'a question that nobody waits for is left open')
  return after
}

t.test('whatever is done to a run, its history is legal and its state is what the history says', async (t) => {
  const seen = new Set<string>()
  fc.assert(
    fc.property(spec, fc.record({ n: fc.constantFrom(1, 2), bad: fc.constantFrom(1, 1, []) }), fc.array(command, { maxLength: 40 }), (spec, input, commands) => {
      must(checkSpec(spec, 'spec').length === 0, JSON.stringify(checkSpec(spec, 'spec')))
      let scene: Run = given<RunState>(run).when('run.start', { spec, input })
      checkRest(scene)
      const half = Math.floor(commands.length / 2)
      let middle = scene
      for (const [i, command] of commands.entries()) {
        scene = perform(scene, command)
        if (i === half) middle = scene
      }
      const history = scene.history as readonly RunEvent[]
      for (const { type } of history) seen.add(type)
      checkHistory(history)
      same(fold(run, wire(history)), scene.state, 'the state by its history')
      same(fold(run, wire(history.slice(middle.history.length)), START, wire(middle.state)), scene.state, 'the state from a snapshot')
      same(history.reduce((record, event) => patch(record, event.run), {} as WorkflowRun), scene.state.record, 'the record by its patches')
      const rows: Record<string, RunStep> = {}
      for (const { step, row } of history) if (step !== undefined && row) rows[step] = patch(rows[step] ?? ({} as RunStep), row)
      same(rows, scene.state.steps, 'the steps by their patches')
    }),
    { numRuns: 1000 },
  )
  t.strictSame(Object.keys(run.evolve).filter((type) => !seen.has(type)), [], 'the property reaches every type of event')
})
