/**
 * A sample of the stories, run on the real service: HTTP, a worker on a socket, and the timeline as
 * clients read it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { listOf } from '../scenarios/support/given.ts'
import { service, type TestWorker } from '../support/service.ts'
import { lineOf, read } from './story.ts'

/** Stories that neither advance the clock nor ask people questions. */
const SAMPLE = [
  'action/parameters',
  'action/fails',
  'action/retried-by-queue',
  'wait/order',
  'wait/mapping-fails',
  'check/passes',
  'check/fails',
  'check/continue',
  'loop/waits',
  'loop/fire',
  'parallel/all',
  'parallel/first-failure',
  'parallel/any',
  'parallel/continue',
  'parallel/signal',
  'parallel/retry-step',
  'for-each/items',
  'for-each/concurrency',
  'for-each/retry-run',
  'for-each/continue',
  'flow/retry-from-step',
  'cleanup/after-failure',
  'cleanup/after-cancel',
  'limits/steps',
  'output/native',
]
const valuesOf = (text: string): Record<string, unknown> =>
  text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)

const s = await service()
t.teardown(() => s.stop())
const worker: TestWorker = await s.worker()
await s.ok('workflow.create', {
  name: 'Child',
  handle: 'child',
  spec: { steps: [{ id: 'work', kind: 'action', config: { action_name: 'resize' } }] },
})

for (const name of SAMPLE)
  t.test(name, async (t) => {
    const text = readFileSync(join(import.meta.dirname, 'cases', `${name}.txt`), 'utf8')
    const held: Record<string, unknown>[] = []
    let id: unknown
    let spec: unknown
    /** Waits until the worker has the job of a step, and returns the job. */
    const jobOf = async (step: string): Promise<Record<string, unknown>> => {
      for (;;) {
        const index = held.findIndex(({ step_id }) => String(step_id).endsWith(`:${step}`))
        if (index >= 0) return held.splice(index, 1)[0] as Record<string, unknown>
        held.push(await worker.job())
      }
    }
    for (const line of read(text).lines) {
      const [, verb = '', rest = ''] = /^(\w+) ?(.*)$/.exec(line) ?? []
      const [first = '', outcome = '', ...more] = rest.split(' ')
      if (verb === 'workflow') spec = JSON.parse(rest)
      else if (verb === 'start') id = (await s.ok('run.start', { spec, ...valuesOf(rest) }))['id']
      else if (verb === 'signal')
        await s.ok('run.signal', {
          id,
          name: first,
          ...(outcome && { payload: valuesOf([outcome, ...more].join(' ')) }),
        })
      else if (verb === 'cancel' || verb === 'retry')
        await s.ok(`run.${verb}`, { id, ...valuesOf(rest) })
      else if (verb === 'job') {
        const values = valuesOf(more.join(' '))
        await worker.report(
          await jobOf(first),
          outcome === 'completed'
            ? { result: values }
            : { status: outcome, error_type: 'failed', ...values },
        )
      }
    }
    await s.follow('run.events', { id }, () => false)
    const told = text.split('\n').filter((line) => /^ {2}\S/.test(line))
    const seen = listOf(await s.ok('run.events', { id, limit: 200 })).map((event) =>
      lineOf({
        ...(event as { step_key?: string; payload?: Record<string, unknown> }),
        type: String(event['event_type']),
        ...(event['step_key'] !== undefined && { step: event['step_key'] }),
      }),
    )
    t.strictSame(seen, told)
    t.strictSame((await s.ok('run.get', { id }))['status'], /^= (\w+)/m.exec(text)?.[1])
  })
