/**
 * The shortest path through the whole service: a request, a leased job, a result and a timeline.
 */
import t from 'tap'
import { service } from '../../support/service.ts'

t.test(
  'a run goes from an HTTP call through a leased worker to a timeline that can be replayed',
  async (t) => {
    const s = await service()
    t.teardown(() => s.stop())
    const worker = await s.worker({ action_names: ['greet'] })
    const run = await s.ok('run.start', {
      spec: {
        steps: [
          {
            id: 'hello',
            kind: 'action',
            config: { action_name: 'greet', parameters: { name: '${{ input.name }}' } },
          },
        ],
        output: { greeting: '${{ steps.hello.output.text }}' },
      },
      input: { name: 'Ada' },
    })
    const job = await worker.job()
    t.match(job, {
      kind: 'action_execution',
      action_name: 'greet',
      run_id: run['id'],
      spec: { parameters: { name: 'Ada' } },
      claim_attempt: 1,
    })
    await worker.report(job, { result: { text: 'Hello, Ada' } })
    const frames = await s.follow('run.events', { id: run['id'] }, () => false)
    t.equal(frames.at(-1)?.event, 'run.completed')
    t.match(frames.at(-1)?.data, {
      payload: { status: 'completed', output: { greeting: 'Hello, Ada' } },
    })
    const replay = await s.ok('run.events', { id: run['id'], limit: 200 })
    t.strictSame(
      replay['items'],
      frames.map((frame) => frame.data),
      'the JSON page contains the same records',
    )
    t.match(await s.ok('run.get', { id: run['id'] }), {
      status: 'completed',
      result: { greeting: 'Hello, Ada' },
    })
    worker.close()
  },
)
