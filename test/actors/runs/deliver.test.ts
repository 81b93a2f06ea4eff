/** Delivery of source events to runs, and the index of the open waits of a run. */
import t from 'tap'
import { type RunEvent, waitChange } from '../../../protocol/runs/events.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { START, typesOf } from '../../support/given.ts'
import { type After, open, record, started, step, wait } from './story.ts'

const waits = (config: Record<string, unknown> = {}) =>
  wait('a', 'x', { event_type: 'row.inserted', ...config })
const event = (n: number, id = 'e1', source_id?: string) => ({
  source_event_id: id,
  event_type: 'row.inserted',
  event: { n },
  meta: { by: 'ada' },
  ...(source_id !== undefined && { source_id }),
})

t.test('an event completes the step that waits for its type, once', async (t) => {
  const scene = open(
    started(
      [waits({ payload_mapping: { n: 'event.n', by: 'meta.by' } }), waits({ match: { n: 2 } })].map(
        (one, i) => ({ ...one, id: `s${i}` }),
      ),
    ),
  )
  t.strictSame(scene.ask('awaiting'), [{ wait_id: 'wait_1', event_type: 'row.inserted' }])
  const given = open(scene.when('event.deliver', event(2)))
  t.strictSame(step(given, 's0')?.result, { n: 2, by: 'ada' })
  t.strictSame(given.when('event.deliver', event(2)).events, [], 'a repeat')
  t.strictSame(given.when('event.deliver', event(1, 'e2')).events, [], 'does not match')
  t.equal(record(given.when('event.deliver', event(2, 'e3'))).status, 'completed')
})

t.test('an event of another type or source changes nothing', async (t) => {
  const scene = open(started([waits({ source_id: 'tbl_1' })]))
  t.strictSame(scene.when('event.deliver', { ...event(1), event_type: 'row.deleted' }).events, [])
  t.strictSame(scene.when('event.deliver', event(1)).events, [])
  t.equal(record(scene.when('event.deliver', event(1, 'e', 'tbl_1'))).status, 'completed')
})

t.test('one event completes the waits of all branches for it', async (t) => {
  const scene = open(
    started([
      {
        id: 'all',
        kind: 'for_each',
        config: { items: [1, 2, 3], steps: [waits({ match: { n: 1 } })] },
      } as Step,
    ]),
  )
  const after = scene.when('event.deliver', event(1))
  t.equal(record(after).status, 'completed')
  t.equal(typesOf(after).filter((type) => type === 'wait.resumed').length, 4)
})

t.test('the events of a run open and close waits in an index', async (t) => {
  const index = new Map<string, string>()
  const follow = (events: readonly unknown[]) => {
    for (const one of events as RunEvent[]) {
      const change = waitChange(one)
      if (change && 'opens' in change) index.set(change.opens.wait_id, change.opens.event_type)
      else if (change) index.delete(change.closes)
    }
  }
  const scene = open(
    started([
      {
        id: 'all',
        kind: 'for_each',
        config: { items: [1, 2], join: 'any', steps: [waits({ match: { n: '${{ item }}' } })] },
      } as Step,
      waits(),
    ]),
  )
  follow(scene.history)
  t.strictSame([...index.values()], ['row.inserted', 'row.inserted'])
  const after = open(scene.when('event.deliver', event(2)))
  follow(after.history.slice(scene.history.length))
  t.equal(index.size, 1)
  follow(after.when('run.cancel').events)
  t.equal(index.size, 0)
})

t.test('if an event completes two branches, the first wins', async (t) => {
  const scene = open(
    started([
      {
        id: 'all',
        kind: 'for_each',
        config: { items: [1, 2], join: 'any', steps: [waits()] },
      } as Step,
    ]),
  )
  const after = scene.when('event.deliver', event(1))
  t.ok(typesOf(after).includes('branch.cancelled'))
  t.match(step(after, 'all')?.result, { completed: 1, failed: 0, winner: '0' })
})

t.test('a wait opens, and its timeout starts, when the matcher confirms it', async (t) => {
  const scene = started([
    {
      ...waits({ match: { n: '${{ meta.run_id }}' }, condition: 'event.n > 1' }),
      timeout: { duration: '10s' },
    },
  ])
  t.strictSame(typesOf(scene), ['run.created', 'run.started', 'step.started', 'wait.asked'])
  t.match(record(scene), { status: 'running' })
  t.equal(scene.deadline(), undefined)
  t.strictSame(scene.effects, [
    {
      tell: {
        to: { kind: 'events', id: 'prj_1' },
        name: 'wait.watch',
        input: {
          run_id: 'run_1',
          wait: {
            wait_id: 'wait_1',
            event_type: 'row.inserted',
            match: { n: 'run_1' },
            condition: 'event.n > 1',
          },
        },
      },
    },
  ])
  t.strictSame(
    scene.when('event.deliver', { ...event(2), wait_ids: ['wait_1'] }).events,
    [],
    'nothing is given before',
  )
  t.strictSame(scene.when('event.watched', { wait_id: 'wait_9' }).events, [], 'another wait')
  t.match(scene.when('run.signal', { step_key: 'a', result: {} }).refused, {
    refused: 'bad_request',
  })
  const opened = scene.when('event.watched', { wait_id: 'wait_1' }, { at: START + 5000 })
  t.strictSame(typesOf(opened), ['step.suspended', 'wait.opened', 'run.suspended'])
  t.equal(opened.deadline(), START + 15_000)
  t.strictSame(opened.when('event.watched', { wait_id: 'wait_1' }).events, [], 'a repeat')
  t.strictSame(
    opened.when('event.deliver', { ...event(2), wait_ids: ['wait_0'] }).events,
    [],
    'it was for an earlier wait',
  )
  const done = opened.when('event.deliver', { ...event(2), wait_ids: ['wait_1'] })
  t.equal(record(done).status, 'completed')
  t.match(done.effects, [
    { tell: { name: 'wait.unwatch', input: { run_id: 'run_1', wait_id: 'wait_1' } } },
    {
      tell: {
        name: 'source.publish',
        input: { event_type: 'run.completed', source_id: 'run_1', depth: 1 },
      },
    },
  ])
})

t.test(
  'every end of a wait is sent to the matcher, and an unopened wait is never shown',
  async (t) => {
    const unwatched = (after: After) =>
      after.effects.flatMap((effect) =>
        'tell' in effect && effect.tell.name === 'wait.unwatch'
          ? [(effect.tell.input as { wait_id: string }).wait_id]
          : [],
      )
    const scene = started([{ ...waits(), timeout: { duration: '10s' } }], {
      limits: { wall_clock_timeout: '1m' },
    })
    const opened = open(scene)
    t.strictSame(unwatched(opened.when('wake', {}, { at: START + 10_000 })), ['wait_1'], 'its time')
    t.strictSame(unwatched(opened.when('run.resume')), ['wait_1'])
    t.strictSame(unwatched(opened.when('run.signal', { step_key: 'a', result: {} })), ['wait_1'])
    const cancelled = scene.when('run.cancel')
    t.strictSame(unwatched(cancelled), ['wait_1'])
    t.strictSame(cancelled.when('event.watched', { wait_id: 'wait_1' }).events, [], 'too late')
    t.notOk(JSON.stringify(cancelled.events.map(({ payload }) => payload)).includes('wait_1'))
    t.strictSame(
      unwatched(scene.when('wake', {}, { at: START + 60_000 })),
      ['wait_1'],
      'the time of the run',
    )
    const branches = started([
      { id: 'all', kind: 'for_each', config: { items: [1, 2], steps: [waits()] } } as Step,
    ])
    t.strictSame(unwatched(branches.when('run.cancel')), ['wait_2', 'wait_3'])
    t.strictSame(
      unwatched(started([wait('a')]).when('run.cancel')),
      [],
      "signals are the run's own",
    )
  },
)

t.test('a run publishes its events with their depth in the chain', async (t) => {
  const said = (after: After) =>
    after.effects.flatMap((effect) =>
      'tell' in effect && effect.tell.name === 'source.publish' ? [effect.tell.input] : [],
    )
  const check = {
    id: 'c',
    kind: 'check',
    config: { on_fail: 'continue', checks: [{ name: 'n', kind: 'expr', expr: 'input.n == 1' }] },
  } as Step
  const after = started(
    [check],
    {},
    {
      input: { n: 2 },
      cause_depth: 3,
      definition: { id: 'wfd_1', version: 2, spec: { steps: [check] } },
    },
  )
  t.match(said(after), [
    {
      event_type: 'check.failed',
      source_kind: 'loop_run',
      source_id: 'run_1',
      event: { run_id: 'run_1', definition_id: 'wfd_1', step: 'c', verdict: 'fail', failed: ['n'] },
      meta: { run_id: 'run_1', definition_id: 'wfd_1' },
      depth: 4,
    },
    {
      event_type: 'run.completed',
      event: {
        run_id: 'run_1',
        definition_id: 'wfd_1',
        status: 'completed',
        output: {},
        started_at: /Z$/,
        completed_at: /Z$/,
      },
      depth: 4,
    },
  ])
  t.match(said(started([wait('a')]).when('run.signal', { name: 'go', payload: { x: 1 } })), [
    {
      id: 'sevt_1',
      event_type: 'signal.go',
      source_kind: 'signal',
      source_id: 'run_1',
      event: { run_id: 'run_1', signal_name: 'go', payload: { x: 1 } },
    },
    { event_type: 'run.completed', depth: 1 },
  ])
})
