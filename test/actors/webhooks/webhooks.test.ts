/** Webhooks and secrets of a project, and the webhooks to which an event is delivered. */

import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { eventsActor } from '../../../actors/events/events.ts'
import type { SourcesState } from '../../../actors/events/state.ts'
import { projectActor } from '../../../actors/projects/project.ts'
import { defaultTriggerLimits } from '../../../protocol/events/sources.ts'
import { given, type Scene } from '../../support/given.ts'

const project = defineActor(projectActor({ brand: 'Acme' }))
const events = defineActor(eventsActor(defaultTriggerLimits))
const first = (more: object = {}) =>
  given(project).when('webhook.create', {
    name: 'hook',
    url: 'https://example.org/',
    events: ['run.*'],
    sealed: 's1',
    ...more,
  })
const id = 'wbh_1'

t.test('the events actor learns of a change to a webhook in the same commit', async (t) => {
  const hears = (scene: { tells: readonly { input: unknown; to: unknown }[] }) =>
    scene.tells.map(({ to, input }) => [to, input])
  const to = { kind: 'events', id: 'project_1' }
  t.strictSame(hears(first()), [[to, { webhook_id: id, events: ['run.*'] }]])
  t.strictSame(hears(first({ enabled: false })), [[to, { webhook_id: id }]])
  t.strictSame(hears(first({ url: '' })), [[to, { webhook_id: id }]])
  t.strictSame(hears(first().when('webhook.update', { webhook_id: id, events: [] })), [
    [to, { webhook_id: id, events: [] }],
  ])
  t.strictSame(hears(first().when('webhook.update', { webhook_id: id, enabled: false })), [
    [to, { webhook_id: id }],
  ])
  t.strictSame(hears(first().when('webhook.delete', { webhook_id: id })), [
    [to, { webhook_id: id }],
  ])
  t.strictSame(
    first().when('webhook.update', { webhook_id: id, events: ['run.*'], name: 'hook' }).events,
    [],
    'nothing changed',
  )
})

t.test('no reply contains the secret, and its version increases', async (t) => {
  const made = first()
  t.notOk(JSON.stringify(made.reply).includes('s1'))
  const rotated = made.when('webhook.rotate_secret', { webhook_id: id, sealed: 's2' })
  t.strictSame(rotated.reply, { secret_ref: 'acme/webhook/wbh_1', secret_version: 2 })
  t.match(rotated.ask('webhook', { webhook_id: id }), { secret: { sealed: 's2', version: 2 } })
  t.equal(made.ask('webhook', { webhook_id: 'wbh_2' }), null)
})

t.test(
  'a reference names the latest or a given version of a secret, while it is stored',
  async (t) => {
    const put = (scene: Scene<never>, n: number) =>
      scene.when('secret.put', {
        secret_name: 'key',
        names: ['a'],
        material: { sealed: `s${n}`, digest: `d${n}` },
      })
    let scene: Scene<never> = put(given(project), 1)
    t.strictSame(scene.ask('secret', { ref: 'key' }), { sealed: 's1', version: 1 })
    t.equal(put(scene, 1).events.length, 0, 'the same again stores nothing')
    for (let n = 2; n <= 12; n++) scene = put(scene, n)
    t.strictSame(scene.ask('secret', { ref: 'key' }), { sealed: 's12', version: 12 })
    t.strictSame(scene.ask('secret', { ref: 'key:3' }), { sealed: 's3', version: 3 })
    for (const ref of ['key:2', 'key:13', 'other', 'key:', '__proto__', 'constructor:1'])
      t.equal(scene.ask('secret', { ref }), null, ref)
    t.notOk(JSON.stringify(scene.ask('secrets')).includes('s12'))
    t.equal(scene.when('secret.delete', { secret_name: 'key' }).ask('secret', { ref: 'key' }), null)
  },
)

t.test('an event goes to webhooks that list its type, its family, or no types', async (t) => {
  const hooks: Record<string, string[]> = {
    exact: ['run.failed'],
    family: ['run.*', 'order.*'],
    any: [],
    star: ['*'],
    signals: ['signal.*'],
  }
  let scene: Scene<SourcesState> = given<SourcesState>(events)
  for (const [webhook_id, wanted] of Object.entries(hooks))
    scene = scene.when('hook.set', { webhook_id, events: wanted })
  t.strictSame(
    scene.when('hook.set', { webhook_id: 'exact', events: ['run.failed'] }).events,
    [],
    'a repeat',
  )
  const told = (event_type: string) =>
    Object.keys(
      (scene.when('source.publish', {
        event_type,
        source_kind: 'x',
        source_id: 'y',
        event: { run_id: 'run_1' },
        meta: { run_id: 'run_1' },
        depth: 0,
      }).events[0]?.['hooks'] ?? {}) as object,
    )
  t.strictSame(told('run.failed'), ['exact', 'family', 'any', 'star'])
  t.strictSame(told('order.paid'), ['family', 'any', 'star'])
  t.strictSame(told('runs.failed'), ['any', 'star'])
  t.strictSame(told('signal.go'), ['any', 'star', 'signals'])
  t.strictSame(told('schedule.tick'), [], 'internal events are not delivered')
  const done = scene.when('source.publish', {
    event_type: 'run.failed',
    source_kind: 'loop_run',
    source_id: 'run_1',
    event: { run_id: 'run_1', status: 'failed' },
    meta: { run_id: 'run_1' },
    depth: 0,
  })
  t.match(done.effects[0], {
    tell: {
      to: { kind: 'delivery', id: 'whd_1' },
      name: 'delivery.open',
      input: {
        to: { kind: 'webhook', webhook_id: 'exact' },
        event_type: 'run.failed',
        run_id: 'run_1',
        body: {
          type: 'run.failed',
          data: { id: 'run_1', run_id: 'run_1', status: 'failed' },
          delivery_id: 'whd_1',
          event_id: /^sevt_/,
          project_id: 'prj_1',
        },
      },
    },
  })
  const without = Object.keys(hooks).reduce(
    (now, webhook_id) => now.when('hook.set', { webhook_id }),
    scene,
  )
  t.strictSame(
    without.when('source.publish', {
      event_type: 'run.failed',
      source_kind: 'x',
      source_id: 'y',
      event: {},
      meta: {},
      depth: 0,
    }).events,
    [],
    'no listener for runs is left',
  )
})
