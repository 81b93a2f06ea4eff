/**
 * `data` of a delivery to a webhook: the record that the event is about, as it was at the time of
 * the event, and the event's payload.
 */
import t from 'tap'
import { defineActor, type Effect } from '../../../actors/actor.ts'
import { eventsActor } from '../../../actors/events/events.ts'
import type { SourcesState } from '../../../actors/events/state.ts'
import { run } from '../../../actors/runs/run.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { defaultTriggerLimits, type Publication } from '../../../protocol/events/sources.ts'
import { shownRun } from '../../../protocol/loops/record.ts'
import { given } from '../../support/given.ts'
import { bytes, ready } from '../artifacts/story.ts'
import { answer, asked, record as interactionOf } from '../interactions/story.ts'
import { Yard } from '../loops/yard.ts'
import { failed, record as runOf, sleep, started } from '../runs/story.ts'
import { begun, say } from '../sessions/story.ts'

const events = defineActor(eventsActor(defaultTriggerLimits))
const listening = given<SourcesState>(events).when('hook.set', { webhook_id: 'wbh_1', events: [] })

const published = (effects: readonly Effect[], event_type: string): Publication[] =>
  effects
    .flatMap((effect) =>
      'tell' in effect && effect.tell.name === 'source.publish'
        ? [effect.tell.input as Publication]
        : [],
    )
    .filter((publication) => publication.event_type === event_type)

/**
 * Requires exactly one event of this type in the effects. Returns the `data` of its webhook
 * delivery.
 */
function dataOf(effects: readonly Effect[], event_type: string): JsonObject {
  const [publication, more] = published(effects, event_type)
  if (!publication || more) throw new Error(`not one ${event_type}`)
  const [delivery] = listening.when('source.publish', publication).effects
  if (!delivery || !('tell' in delivery)) throw new Error('no delivery')
  return (delivery.tell.input as { body: { data: JsonObject } }).body.data
}

t.test('an ended run: its record and the payload, no other member', async (t) => {
  const input = { order: 7 }
  const done = started([], {}, { input, external_id: 'x-1' })
  const record = shownRun(runOf(done))
  t.match(record, { status: 'completed', input, result: {} })
  t.strictSame(dataOf(done.effects, 'run.completed'), {
    ...record,
    run_id: record.id,
    output: {},
  })
  const broken = failed()
  const { record: after } = broken.state
  t.strictSame(dataOf(broken.effects, 'run.failed'), {
    ...shownRun(after),
    run_id: after.id,
    error: 'no',
    step: 'a',
    stop_reason: 'step_failed',
  })
  const cancelled = started([sleep('s')]).when('run.cancel', { reason: 'late' })
  t.match(dataOf(cancelled.effects, 'run.cancelled'), {
    ...shownRun(runOf(cancelled)),
    reason: 'late',
    stop_reason: 'cancelled',
  })
})

t.test('a check: the record of the run in progress', async (t) => {
  const after = started([
    {
      id: 'c',
      kind: 'check',
      config: { checks: [{ name: 'one', kind: 'expr', expr: '1 == 1' }] },
    } as never,
  ])
  t.match(dataOf(after.effects, 'check.passed'), {
    id: runOf(after).id,
    status: 'running',
    created_at: runOf(after).created_at,
    step: 'c',
    verdict: 'pass',
  })
})

t.test('a large record loses its largest members and is marked as truncated', async (t) => {
  const done = started([], {}, { input: { text: 'x'.repeat(300_000) } })
  t.match(dataOf(done.effects, 'run.completed'), {
    id: runOf(done).id,
    status: 'completed',
    input: null,
    result: {},
    truncated: true,
  })
  t.notMatch(published(done.effects, 'run.completed')[0]?.event, { truncated: true })
})

t.test('events of a running run store only a small record', async (t) => {
  const check = {
    id: 'c',
    kind: 'check',
    config: { checks: [{ name: 'one', kind: 'expr', expr: '1 == 1' }] },
  }
  const after = started([check as never], {}, { input: { text: 'x'.repeat(20_000) } })
  const stored = after.events.find(({ type }) => type === 'check.passed')
  t.ok(JSON.stringify(stored).length < 3000, 'a large input is not stored with each check')
  t.match(dataOf(after.effects, 'check.passed'), { input: null, truncated: true, step: 'c' })
  const { input } = dataOf(after.effects, 'run.completed') as { input: { text: string } }
  t.equal(input.text.length, 20_000)
})

t.test('an interaction: its record when it was created and when it was resolved', async (t) => {
  const scene = asked()
  t.match(dataOf(scene.effects, 'interaction.created'), {
    ...interactionOf(scene),
    interaction_id: interactionOf(scene).id,
    consumer_kind: 'none',
  })
  const done = answer(scene, 'ada', false)
  t.match(interactionOf(done), { status: 'completed', outcome: false })
  t.match(dataOf(done.effects, 'interaction.resolved'), {
    ...interactionOf(done),
    responder_id: 'ada',
  })
})

t.test('a message: its record with its session and agent', async (t) => {
  const story = begun('hi')
  t.match(dataOf(story.last?.effects ?? [], 'session.message.created'), {
    id: /^sesmsg_/,
    message_id: /^sesmsg_/,
    session_id: 'ses_1',
    agent_id: 'agt_1',
    role: 'user',
    content: [say('hi')],
    entry_type: 'message',
    created_at: /Z$/,
  })
})

t.test('an artifact: its record and the payload, no other member', async (t) => {
  const upload = ready({}, { ...bytes, metadata: { a: 1 } })
  t.strictSame(dataOf(upload.effects, 'artifact.created'), {
    ...upload.state.artifact,
    artifact_id: upload.state.artifact?.id,
    kind: 'file',
    content_type: 'text/plain',
  })
  const artifact = { ...upload.state.artifact, visibility: 'shared', run_id: 'run_1' }
  const run = started([sleep('s')]).when('run.artifact', { artifact, step: 's' })
  t.strictSame(dataOf(run.effects, 'artifact.created'), {
    ...artifact,
    artifact_id: artifact.id,
    kind: 'file',
    content_type: 'text/plain',
    loop_run_id: 'run_1',
    step: 's',
  })
})

t.test('a loop that pauses itself: the run whose failure reached the limit', async (t) => {
  const yard = new Yard()
  yard.create({ limits: { pause_after_consecutive_failures: 1 } })
  yard.start()
  const run_id = yard.in('running')[0] ?? ''
  yard.send('run.left', {
    run_id,
    status: 'failed',
    record: { id: run_id, loop_id: yard.id, status: 'failed' },
  })
  const paused = yard.events.find(({ type }) => type === 'loop.auto_paused')
  const self = { kind: 'loop', id: yard.id, project: 'prj_1' } as const
  const effects = yard.actor.react?.['loop.auto_paused']?.(paused as never, self) ?? []
  t.match(dataOf(effects, 'loop.auto_paused'), {
    id: run_id,
    run_id,
    loop_id: yard.id,
    status: 'failed',
    threshold: 1,
  })
})

t.test('events of earlier releases without a record are delivered with the id', async (t) => {
  const effects =
    run.react?.['run.completed']?.(
      {
        type: 'run.completed',
        payload: { output: {}, status: 'completed' },
        run: { status: 'completed', completed_at: '2026-01-01T00:00:00.000Z' },
        private: { about: { depth: 1, of: { definition_id: 'wf_1' }, more: { name: 'n' } } },
      } as never,
      { kind: 'run', id: 'run_1', project: 'prj_1' },
    ) ?? []
  t.strictSame(dataOf(effects, 'run.completed'), {
    id: 'run_1',
    run_id: 'run_1',
    definition_id: 'wf_1',
    name: 'n',
    output: {},
    status: 'completed',
    completed_at: '2026-01-01T00:00:00.000Z',
  })
})
