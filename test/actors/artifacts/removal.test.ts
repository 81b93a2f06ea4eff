/**
 * Deletion of the artifacts of a deleted project, by an errand that is repeated until it succeeds.
 */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { projectActor } from '../../../actors/projects/project.ts'
import { given, typesOf } from '../../support/given.ts'

const project = given(defineActor(projectActor({ brand: 'Service' })))
const ended = project.when('project.end', { organization: 'org_1' })
const none = { errand: 'none' }

t.test('the end of a project enqueues the errand in the same commit, once', async (t) => {
  t.same(typesOf(ended), ['project.ended', 'artifact_removal.begun'])
  t.match(ended.tells, [
    {
      to: { kind: 'queue', id: '0.$errands' },
      name: 'queue.enqueue',
      input: { job: { id: 'job_1', kind: 'errand', owner: { kind: 'project' } } },
    },
  ])
  t.same(ended.ask('job_spec', { job_id: 'job_1' }), { errand: 'remove_artifacts' })
  t.same(ended.ask('job_spec', { job_id: 'job_2' }), none)
  const again = ended.when('project.end', { organization: 'org_1', after: 'loop_1' })
  t.same([typesOf(again), again.tells], [['project.ended'], []])
})
t.test('an errand that failed is enqueued again', async (t) => {
  const failed = ended.when('job.settled', { job_id: 'job_1', outcome: 'failed', attempt: 20 })
  t.same(typesOf(failed), ['artifact_removal.begun'])
  t.equal(failed.tells.length, 1)
  t.same(failed.ask('job_spec', { job_id: 'job_1' }), none)
  t.same(failed.ask('job_spec', { job_id: 'job_2' }), { errand: 'remove_artifacts' })
})
t.test('a completed errand is removed', async (t) => {
  const done = ended.when('job.settled', { job_id: 'job_1', outcome: 'completed', attempt: 1 })
  t.same(typesOf(done), ['artifact_removal.ended'])
  t.same(done.tells, [])
  t.same(done.ask('job_spec', { job_id: 'job_1' }), none)
  t.same(done.when('job.settled', { job_id: 'job_1', outcome: 'failed' }).events, [])
})
