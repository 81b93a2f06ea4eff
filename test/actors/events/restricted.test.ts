/** Events of private artifacts: whom the matcher notifies, and what it passes on. */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { eventsActor } from '../../../actors/events/events.ts'
import { defaultTriggerLimits } from '../../../protocol/events/sources.ts'
import { given } from '../../support/given.ts'

const actor = defineActor(eventsActor(defaultTriggerLimits))

t.test('the owner of a private artifact is passed to triggers and deliveries', async (t) => {
  const from = given(actor)
    .when('triggers.set', {
      loop_id: 'loop_1',
      version: 1,
      triggers: [
        { trigger_id: 'trg_1', event_type: 'artifact.created' },
        { trigger_id: 'trg_2', event_type: 'artifact.created', condition: 'event.n' },
      ],
    })
    .when('wait.watch', {
      run_id: 'run_1',
      wait: { wait_id: 'wait_1', event_type: 'artifact.*' },
    })
    .when('hook.set', { webhook_id: 'wbh_1', events: [] })
  const publication = {
    event_type: 'artifact.created',
    source_kind: 'artifact',
    source_id: 'art_1',
    event: { n: 1 },
    meta: {},
    depth: 0,
  }
  const open = from.when('source.publish', publication)
  t.match(open.events, [{ wakes: { run_1: ['wait_1'] }, faulty: { trg_2: /./ } }])
  t.notMatch(JSON.stringify(open.effects), 'private_owner')
  const { events, effects } = from.when('source.publish', {
    ...publication,
    private_owner: 'user_1',
  })
  t.match(events, [
    {
      fires: { loop_1: ['trg_1'] },
      private_owner: 'user_1',
      wakes: undefined,
      faulty: undefined,
    },
  ])
  t.match(effects, [
    { tell: { name: 'trigger.fire', input: { source: { private_owner: 'user_1' } } } },
    { tell: { name: 'delivery.open', input: { private_owner: 'user_1' } } },
  ])
  t.equal(effects.length, 2)
})
