/**
 * A principal that loses access to a project leaves its channels: the commit that removes the
 * access also enqueues an errand, which removes the memberships.
 */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { projectActor } from '../../../actors/projects/project.ts'
import { permissions } from '../../../protocol/access/schema.ts'
import { given, typesOf } from '../../support/given.ts'

const project = defineActor(projectActor({ brand: 'Acme' }))
const holds = Object.keys(permissions)
const begin = () =>
  given<{ partings: Record<string, string> }>(project)
    .when('principal.create', { name: 'bot', holds })
    .when('user.create', { name: 'Ann', holds })
    .when('agent.create', { name: 'helper' })
const agentId = (scene: ReturnType<typeof begin>): string => (scene.reply as { id: string }).id

t.test('deleting or disabling a principal enqueues the errand; other changes do not', async (t) => {
  for (const [name, input] of [
    ['principal.delete', { id: 'svc_1' }],
    ['principal.update', { id: 'svc_1', state: 'disabled', holds }],
    ['user.delete', { id: 'user_1' }],
    ['user.update', { id: 'user_1', state: 'disabled', holds }],
    ['agent.delete', {}],
  ] as const) {
    const before = begin()
    const id = 'id' in input ? input.id : agentId(before)
    const after = before.when(name, { ...input, id })
    t.match(after.events.at(-1), { type: 'parting.begun', id, job_id: 'job_1' }, name)
    t.match(
      after.tells,
      [
        {
          to: { kind: 'queue', id: '0.$errands' },
          name: 'queue.enqueue',
          input: {
            job: { id: 'job_1', kind: 'errand', owner: { kind: 'project', id: 'project_1' } },
          },
        },
      ],
      name,
    )
    t.strictSame(
      after.ask('job_spec', { job_id: 'job_1' }),
      { errand: 'leave', principal_id: id },
      name,
    )
  }
  const scene = begin()
  t.notOk(
    typesOf(scene.when('user.update', { id: 'user_1', name: 'Anna', holds })).includes(
      'parting.begun',
    ),
  )
  t.notOk(
    typesOf(scene.when('principal.update', { id: 'svc_1', state: 'active', holds })).includes(
      'parting.begun',
    ),
  )
  t.match(scene.when('user.delete', { id: 'user_9' }).refused, { refused: 'not_found' })
})
t.test('a failed errand is started again, a completed one is removed', async (t) => {
  const gone = begin().when('user.delete', { id: 'user_1' })
  const again = gone.when('job.settled', { job_id: 'job_1', outcome: 'failed', attempt: 20 })
  t.strictSame(again.state.partings, { job_2: 'user_1' })
  t.equal(again.tells.length, 1)
  const done = again.when('job.settled', { job_id: 'job_2', outcome: 'completed', attempt: 1 })
  t.strictSame([done.state.partings, done.tells], [{}, []])
  t.strictSame(
    done.when('job.settled', { job_id: 'job_1', outcome: 'failed', attempt: 1 }).events,
    [],
  )
  t.strictSame(done.ask('job_spec', { job_id: 'job_1' }), { errand: 'none' })
})
