/**
 * Random runs under random commands. Invariants, for any order, delay and repetition of commands:
 * the history is legal, the state follows from the history, and a run that has not ended always
 * waits for something.
 */
import * as fc from 'fast-check'
import t from 'tap'
import { fold } from '../../../actors/actor.ts'
import { run } from '../../../actors/runs/run.ts'
import { isAsked, type Note, progressesOf, type RunState } from '../../../actors/runs/state.ts'
import { patch } from '../../../protocol/patch.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { RunStep, WorkflowRun } from '../../../protocol/runs/schema.ts'
import { checkSpec } from '../../../protocol/workflows/spec.ts'
import { given, START } from '../../support/given.ts'
import { spec } from './model/spec.ts'
import { type After, type Run, watching } from './story.ts'

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const job = fc.integer({ min: 1, max: 12 }).map((n) => `job_${n}`)
/**
 * Random commands, most of which do not apply in the current state. With `last`, a command refers
 * to a job, child run, turn, wait or question that the run waits for.
 */
const command = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.boolean(), job, fc.constantFrom('completed', 'completed', 'failed', 'cancelled'))
      .map(([last, job_id, outcome]) => ({
        name: 'job.settled',
        last,
        input: { job_id, outcome, attempt: 1, result: { r: 1 } },
      })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.boolean(),
        job,
        fc.integer({ min: 1, max: 3 }),
        fc.constantFrom('failure', 'lease_expired'),
      )
      .map(([last, job_id, attempt, reason]) => ({
        name: 'job.retried',
        last,
        input: { job_id, attempt, max_attempts: 3, reason },
      })),
  },
  {
    weight: 6,
    arbitrary: fc
      .record({
        name: fc.constantFrom('a', 'b'),
        payload: fc.constantFrom({ n: 1 }, { n: 2 }, { n: [] }),
        idempotency_key: fc.constantFrom('', '', 'k', 'l'),
      })
      .map((input) => ({ name: 'run.signal', input })),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('s0', '1', 's2', 's0.b0.0', 's2.0.0', 'nope')
      .map((step_key) => ({ name: 'run.signal', input: { step_key, result: { by: 'hand' } } })),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        fc.boolean(),
        fc.constantFrom(1, 2, 'x1', 'x2'),
        fc.constantFrom('completed', 'cancelled', 'expired'),
      )
      .map(([last, n, status]) => ({
        name: 'interaction.settled',
        last,
        input: { interaction_id: `iact_${n}`, signal_name: 'a', status, value: true },
      })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.boolean(),
        fc.constantFrom('x1', 'x2'),
        fc.constantFrom('interaction.opened', 'interaction.responded'),
      )
      .map(([last, n, name]) => ({
        name,
        last,
        input: {
          interaction_id: `iact_${n}`,
          protocol: 'request_approval',
          targets: ['ada'],
          title: 'Go?',
          response: 1,
          responder: { user_id: 'ada' },
        },
      })),
  },
  {
    weight: 6,
    arbitrary: fc
      .constantFrom(0, 1, 5_000, 30_000, 61_000)
      .map((later) => ({ name: 'wake', input: {}, later })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.boolean(),
        fc.integer({ min: 1, max: 6 }),
        fc.constantFrom('completed', 'failed', 'cancelled'),
      )
      .map(([last, n, status]) => ({
        name: 'child.settled',
        last,
        input: { run_id: `run_${n}`, status },
      })),
  },
  {
    weight: 6,
    arbitrary: fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 5 })).map(([last, n]) => ({
      name: 'turn.defined',
      last,
      input: {
        turn_id: `turn_${n}`,
        session_id: `ses_${n % 2}`,
        place: {},
        definition: { agent_id: 'agt_1' },
      },
    })),
  },
  {
    weight: 6,
    arbitrary: fc
      .tuple(
        fc.boolean(),
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom(
          { status: 'completed', output: { pass: true, reason: 'r' } },
          { status: 'completed', text: 'so' },
          { status: 'cancelled' },
          { status: 'failed', stalled: { tool: 'x', duplicate_calls: 4, limit: 3 } },
          { status: 'failed', again: true },
        ),
      )
      .map(([last, n, report]) => ({
        name: 'turn.settled',
        last,
        input: { turn_id: `turn_${n}`, session_id: `ses_${n % 2}`, ...report },
      })),
  },
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.boolean(), fc.integer({ min: 1, max: 9 }))
      .map(([last, n]) => ({ name: 'event.watched', last, input: { wait_id: `wait_${n}` } })),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom('signal.a', 'signal.b', 'order.paid').map((event_type) => ({
      name: 'event.deliver',
      input: { source_event_id: `e_${event_type}`, event_type, event: { n: 1 }, meta: {} },
    })),
  },
  { weight: 1, arbitrary: fc.constant({ name: 'child.cancel', input: { reason: 'r' } }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('s0', '1', 's2').map((from_step) => ({
      name: 'run.retry',
      input: { from_step, wall_clock_extend_seconds: 60 },
    })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(maybe(fc.constantFrom('s0', '1')), fc.constantFrom(1, 2), fc.constantFrom(1, []))
      .map(([from_step, n, bad]) => ({
        name: 'run.retry',
        input: {
          ...(from_step !== undefined && { from_step }),
          input: { n, bad },
          wall_clock_extend_seconds: 60,
        },
      })),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom({}, {}, { wall_clock_extend_seconds: 60 })
      .chain((input) =>
        fc.constantFrom('run.retry', 'run.recover').map((name) => ({ name, input })),
      ),
  },
  { weight: 1, arbitrary: fc.constant({ name: 'run.resume', input: {} }) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('run.cancel', 'run.start')
      .map((name) => ({ name, input: { reason: 'r' } })),
  },
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
  if (JSON.stringify(found) !== JSON.stringify(wanted))
    throw new Error(`${what}: ${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`)
}
const must = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what)
}
const ends = new Set(['run.completed', 'run.failed', 'run.cancelled'])

function checkHistory(history: readonly RunEvent[]): void {
  const begun = new Set<string>()
  const over = new Set<string>()
  const stored = new Set<string>()
  const called = new Set<unknown>()
  const open = new Set<unknown>()
  const left = new Set<unknown>()
  let ended = false
  let status = ''
  for (const { type, step = '', payload, private: note, run } of history) {
    // An answer that arrives after a failure is stored for a retry.
    const kept: boolean = ended && status === 'failed' && type === 'interaction.settled'
    if (ended)
      must(
        kept || (type === 'run.resumed' && payload?.recovery_action !== undefined),
        `${type} after the end`,
      )
    ended = kept || ends.has(type)
    if (ended && !kept)
      must(
        payload?.status === run?.status && type === `run.${run?.status}`,
        'an end without its status',
      )
    const again = type === 'step.retried' && payload?.retry_scope === 'run_recovery'
    // A recovery with another input may start a step that was skipped.
    const fresh = type === 'step.started' && (left.delete(step) || !begun.has(step))
    if (again || fresh) over.delete(step)
    if (type === 'step.started' || type === 'step.skipped')
      must(fresh || !over.has(step) || type === 'step.skipped', `${type} of ${step}, which is over`)
    if (type === 'step.started') {
      must(fresh || !begun.has(step), `${step} began twice`)
      begun.add(step)
    } else if (type.startsWith('step.') && type !== 'step.skipped')
      must(begun.has(step) && !over.has(step), `${type} of ${step}, which is not under way`)
    if (type === 'step.completed' || type === 'step.skipped') over.add(step)
    // A branch that ended without an output may restart from its first step.
    if (
      type === 'branch.failed' ||
      type === 'branch.cancelled' ||
      (type === 'step.cancelled' && (note as Note | undefined)?.at !== undefined)
    ) {
      const at = `${(note as Note).at}.`
      for (const key of begun) if (key.startsWith(at)) left.add(key)
    }
    // A recovery from a chosen step or with another input may restart the steps of branches.
    if (
      type === 'run.resumed' &&
      (payload?.from_step !== undefined || payload?.input_changed === true)
    )
      for (const key of begun) if (key.includes('.')) left.add(key)
    if (type === 'wait.opened') {
      must(!open.has(payload?.wait_id), 'a wait opened twice')
      open.add(payload?.wait_id)
    } else if (
      (type.startsWith('wait.') || type === 'step.cancelled') &&
      payload?.wait_id !== undefined
    )
      must(open.delete(payload.wait_id), `${type} of a wait that is not open`)
    if (ended) must(open.size === 0, 'the run ended with an open wait')
    if (type === 'action.called') called.add(payload?.job_id)
    else if (type.startsWith('action.'))
      must(called.has(payload?.job_id), `${type} of a job that was not called`)
    if (type === 'action.completed' || type === 'action.failed') called.delete(payload?.job_id)
    const { store, take } = (note ?? {}) as Note
    if (store) stored.add(store.id)
    if (take !== undefined) must(stored.delete(take), `signal ${take} consumed twice or never sent`)
    if (type === 'run.suspended') must(status === 'running', `suspended while ${status}`)
    if (type === 'run.resumed')
      must(
        status === 'suspended' || payload?.recovery_action !== undefined,
        `resumed while ${status}`,
      )
    status = run?.status ?? status
  }
}

/** Checks the invariants of the state between commands. */
function checkRest(scene: Run): void {
  const { record, engine, steps, signals, branches = [] } = scene.state
  const { wait, ending } = engine
  if (ends.has(`run.${record.status}`)) {
    must(
      wait === undefined && scene.deadline() === undefined && branches.length === 0 && !ending,
      'an ended run waits',
    )
    must(
      record.completed_at !== undefined &&
        (record.status === 'failed') === (record.error_type !== undefined),
      'an end without its fields',
    )
    return
  }
  must(
    (record.status === 'suspended' ||
      (record.status === 'running' && (isAsked(wait) || wait?.kind === 'pause'))) &&
      wait !== undefined,
    `nothing to wait for while ${record.status}`,
  )
  const stopping = record.cancel_requested && !ending
  for (const [at, place] of progressesOf(scene.state)) {
    const { kind, due, step = '' } = place.wait ?? {}
    must(kind !== undefined || engine.more_at !== undefined, 'a branch that could move does not')
    if (kind === 'timer' || kind === 'retry' || kind === 'pause')
      must(
        stopping || (due !== undefined && (scene.deadline() ?? Infinity) <= due),
        'a timer without a time',
      )
    if (stopping && engine.more_at === undefined)
      must(
        kind === 'worker' ||
          kind === 'run' ||
          (place.wait?.kind === 'agent' && place.wait.session_id !== undefined) ||
          (at === undefined && kind === 'branches' && branches.length > 0),
        'a cancelled run waits for something that does not end by itself',
      )
    const rows = Object.values(
      at === undefined ? steps : (branches.find(({ key }) => key === at)?.rows ?? {}),
    )
    if (kind !== undefined && kind !== 'pause')
      must(
        rows.some(
          (row) =>
            row.step_key === step && row.status === (isAsked(place.wait) ? 'running' : 'suspended'),
        ),
        'what waits is not suspended',
      )
    must(
      rows.filter(({ status }) => status === 'suspended' || status === 'running').length <= 1,
      'more than one step under way in one place',
    )
    if (place.wait?.kind === 'agent' && place.wait.job_id !== undefined)
      must(
        scene.ask('job_spec', { job_id: place.wait.job_id }) !== null,
        'a turn of which nothing is known',
      )
    if (place.wait?.kind === 'worker')
      must(
        scene.ask('job_spec', { job_id: place.wait.job_id }) !== null,
        'a job without its parameters',
      )
    if (place.wait?.kind === 'event' && !place.wait.match)
      must(
        stopping ||
          !signals.some(
            ({ name }) => `signal.${name}` === (place.wait as { event_type: string }).event_type,
          ),
        'waits for a signal that is there',
      )
  }
  if (wait?.kind === 'branches' && !stopping)
    must(
      branches.length > 0 || engine.more_at !== undefined,
      'waits for branches that are not there',
    )
}

/** Returns the sessions of the turns that the run waits for, by turn id. */
const turning = (scene: Run): Map<string, string> =>
  new Map(
    progressesOf(scene.state).flatMap(([, { wait }]) =>
      wait?.kind === 'agent' && wait.session_id !== undefined
        ? [[wait.turn_id, wait.session_id]]
        : [],
    ),
  )
const listening = (scene: Run): Set<string> =>
  new Set(
    progressesOf(scene.state).flatMap(([, { wait }]) =>
      wait?.kind === 'event' && !wait.event_type.startsWith('signal.') ? [wait.id] : [],
    ),
  )

function perform(
  scene: Run,
  {
    name,
    input,
    last,
    later,
  }: { name: string; input: Record<string, unknown>; last?: boolean; later?: number },
): After {
  const waits = progressesOf(scene.state).flatMap(([, { wait }]) => wait ?? [])
  const job = waits.find((wait) => wait.kind === 'worker')
  const asked = waits.flatMap((wait) => (wait.kind === 'interaction' ? [wait.interaction_id] : []))
  const child = waits.find((wait) => wait.kind === 'run')
  const asking = watching(scene.state)[0]?.wait_id
  const turn = waits.find(
    (wait) => wait.kind === 'agent' && (name === 'turn.defined') === (wait.job_id !== undefined),
  )
  const given = {
    ...input,
    ...(name.startsWith('job.') && { job_id: last && job ? job.job_id : input.job_id }),
    ...(name === 'child.settled' && last && child && { run_id: child.run_id }),
    ...(name === 'event.watched' && last && asking && { wait_id: asking }),
    ...(name.startsWith('turn.') &&
      last &&
      turn?.kind === 'agent' && {
        turn_id: turn.turn_id,
        ...(turn.session_id !== undefined && { session_id: turn.session_id }),
      }),
    ...(name.startsWith('interaction.') && {
      interaction_id:
        last && asked[0] && name !== 'interaction.opened' ? asked[0] : input.interaction_id,
    }),
  }
  frozen(scene.state)
  const known = listening(scene)
  const after = scene.when(name, given, { at: scene.at + (later ?? 7) })
  for (const event of after.events)
    must(event.type in run.evolve, `no evolve arm for ${event.type}`)
  must(after.events.length <= 320, 'too many events for one command')
  // Only a retry changes the input of a run. Steps before the retried step keep their records.
  const resumed = after.events[0] as RunEvent | undefined
  const changed = resumed?.payload?.['input_changed'] === true
  same(after.state.record.input, changed ? input['input'] : scene.state.record.input, 'the input')
  if (changed) {
    const from = resumed?.step
    const keys = scene.state.spec.steps.map((step, index) => step.id ?? String(index))
    for (const key of keys.slice(0, Math.max(0, keys.indexOf(from ?? ''))))
      same(after.state.steps[key], scene.state.steps[key], `the record of ${key}`)
  }
  const end = after.events.findIndex(({ type }) => ends.has(type))
  must(end < 0 || end === after.events.length - 1, 'something follows the end')
  checkRest(after)
  if (
    name === 'job.settled' ||
    name === 'interaction.settled' ||
    name === 'child.settled' ||
    name === 'event.deliver' ||
    name === 'event.watched' ||
    name.startsWith('turn.')
  )
    must(after.when(name, given).events.length === 0, `a repeated ${name} changed something`)
  for (const tell of after.tells)
    must(
      tell.to.kind === 'interaction'
        ? tell.to.id.startsWith('iact_')
        : tell.to.kind === 'run'
          ? tell.name.startsWith('child.')
          : (tell.to.id === '0.default' || tell.to.id === '0.$openings') &&
            tell.name.startsWith('queue.'),
      'told somebody else',
    )
  const withdrawn = after.tells
    .filter((tell) => tell.name === 'interaction.withdraw')
    .map(({ to }) => to.id)
  const still = progressesOf(after.state).flatMap(([, { wait }]) =>
    wait?.kind === 'interaction' ? [wait.interaction_id] : [],
  )
  for (const id of asked)
    must(
      still.includes(id) ||
        withdrawn.includes(id) ||
        (name === 'interaction.settled' && given['interaction_id' as never] === id),
      'a question that nobody waits for is left open',
    )
  // The `events` actor is notified of every wait that it must watch, and of the end of each wait.
  for (const effect of after.effects) {
    const { name: told, input } = 'tell' in effect ? effect.tell : { name: '', input: {} }
    if (told === 'wait.watch') known.add((input as { wait: { wait_id: string } }).wait.wait_id)
    if (told === 'wait.unwatch')
      must(
        known.delete((input as { wait_id: string }).wait_id),
        'a wait ended that the matcher did not know',
      )
  }
  same([...known].sort(), [...listening(after)].sort(), 'waits that the matcher knows')
  // When the run begins to wait for a turn, it sends a command to open the turn. When it stops
  // waiting for a turn that has not just ended, it sends a command to stop the turn.
  const before = turning(scene)
  const toSessions = after.effects.flatMap((effect) =>
    'tell' in effect && effect.tell.to.kind === 'session' ? [effect.tell] : [],
  )
  const opening = toSessions
    .filter(({ name }) => name === 'turn.open')
    .map(({ input }) => (input as { turn_id: string }).turn_id)
  const stopping = toSessions
    .filter(({ name }) => name === 'turn.stop')
    .map(({ input }) => (input as { turn_id: string }).turn_id)
  for (const id of stopping) must(before.has(id), 'a turn is stopped that was not opened')
  for (const id of turning(after).keys())
    must(before.has(id) || opening.includes(id), 'a turn is waited for that nobody opened')
  for (const id of before.keys())
    must(
      turning(after).has(id) || stopping.includes(id) || given['turn_id' as never] === id,
      'a turn that nobody waits for goes on',
    )
  const stopped = after.tells.flatMap(({ name, to, input }) =>
    name === 'queue.cancel'
      ? (input as { job_ids: string[] }).job_ids
      : name === 'child.cancel'
        ? [to.id]
        : [],
  )
  const kept = new Set(
    progressesOf(after.state).flatMap(([, { wait }]) =>
      wait?.kind === 'worker' ? [wait.job_id] : wait?.kind === 'run' ? [wait.run_id] : [],
    ),
  )
  const gone = waits
    .flatMap((wait) =>
      wait.kind === 'worker' ? [wait.job_id] : wait.kind === 'run' ? [wait.run_id] : [],
    )
    .filter((id) => !kept.has(id) && !stopped.includes(id))
  const settled = [given['job_id' as never], given['run_id' as never]] as unknown[]
  must(
    scene.state.record.cancel_requested || gone.every((id) => settled.includes(id)),
    'work that nobody waits for goes on',
  )
  return after
}

t.test('after any commands, the history of a run is legal and determines its state', async (t) => {
  const seen = new Set<string>()
  const lives = fc.property(
    spec,
    fc.record({ n: fc.constantFrom(1, 2), bad: fc.constantFrom(1, 1, []) }),
    fc.array(command, { maxLength: 40 }),
    (spec, input, commands) => {
      must(checkSpec(spec, 'spec').length === 0, JSON.stringify(checkSpec(spec, 'spec')))
      let scene: Run = given<RunState>(run).when('run.start', {
        spec,
        input,
        definitions: {
          child: {
            id: 'wfd_1',
            version: 1,
            spec: { steps: [{ kind: 'sleep', config: { duration: '1s' } }] },
          },
        },
      })
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
      same(
        fold(run, wire(history.slice(middle.history.length)), START, wire(middle.state)),
        scene.state,
        'the state from a snapshot',
      )
      same(
        history.reduce((record, event) => patch(record, event.run), {} as WorkflowRun),
        scene.state.record,
        'the record by its patches',
      )
      const rows: Record<string, RunStep> = {}
      for (const { step, row, private: note } of history)
        if (step !== undefined && row && (note as Note | undefined)?.at === undefined)
          rows[step] = patch(rows[step] ?? ({} as RunStep), row)
      same(rows, scene.state.steps, 'the steps by their patches')
    },
  )
  void fc.assert(lives, { numRuns: 750 })
  // The fixed seed produces all event types that are required below. Other seeds may miss a rare
  // one, so only the types of this seed count. After a change to the arbitraries, choose another.
  seen.clear()
  void fc.assert(lives, { numRuns: 750, seed: 1 })
  // Two types are not required because they are too rare: the cancellation of a branch between two
  // steps (see deliver.test.ts), and a stalled agent (see agent.test.ts). Events of loops, of
  // artifacts and of environments that clients create do not occur here.
  const ofLoops = [
    'run.held',
    'usage.recorded',
    'run.budget_exceeded',
    'loop.auto_paused',
    'loop.asked',
  ]
  const ofArtifacts = ['artifact.created', 'artifact.published', 'environment.bound']
  t.strictSame(
    Object.keys(run.evolve).filter(
      (type) =>
        !['branch.cancelled', 'run.progress_stalled'].includes(type) &&
        !ofLoops.includes(type) &&
        !ofArtifacts.includes(type) &&
        !seen.has(type),
    ),
    [],
    'the property reaches every type of event',
  )
})
