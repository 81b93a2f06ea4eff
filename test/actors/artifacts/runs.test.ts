/**
 * Artifacts of a run: the timeline event, recorded only while the run is active, and the source
 * event.
 */
import t from 'tap'
import { timelineTypes } from '../../../protocol/runs/events.ts'
import { typesOf } from '../../support/given.ts'
import { action, failed, started } from '../runs/story.ts'

const artifact = {
  id: 'art_1',
  visibility: 'shared',
  name: 'a.txt',
  mime_type: 'text/plain',
  size_bytes: 1,
  sha256: 'aa',
  run_id: 'run_1',
  created_at: '2026-01-01T00:00:00.000Z',
}
const run = started([action('build')])

t.test('an active run records the artifact and publishes it', async (t) => {
  const after = run.when('run.artifact', { artifact, step: 'build' })
  t.match(after.events, [
    {
      type: 'artifact.created',
      step: 'build',
      payload: {
        artifact_id: 'art_1',
        name: 'a.txt',
        content_type: 'text/plain',
        step: 'build',
      },
    },
  ])
  t.match(after.effects, [
    {
      tell: {
        to: { kind: 'events', id: 'prj_1' },
        name: 'source.publish',
        input: {
          event_type: 'artifact.created',
          source_id: 'art_1',
          event: { loop_run_id: 'run_1', step: 'build', visibility: 'shared' },
          meta: { loop_run_id: 'run_1', artifact_id: 'art_1' },
          depth: 1,
        },
      },
    },
  ])
})
t.test('the timeline of an ended run does not change', async (t) => {
  const after = failed([action('build')]).when('run.artifact', { artifact })
  t.same(typesOf(after), ['artifact.published'])
  t.notOk(timelineTypes.has('artifact.published'))
  t.match(after.effects, [{ tell: { name: 'source.publish' } }])
})
t.test('the artifact of a session is published as private', async (t) => {
  const after = run.when('run.artifact', { artifact, session_id: 'ses_1' })
  t.match(after.effects, [{ tell: { input: { private_session: 'ses_1' } } }])
})
