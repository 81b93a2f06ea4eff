/** The view role: one SQLite file per partition, fed by the journal, asked over the bus. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { subjects } from '../../protocol/subjects.ts'
import { ViewFollower } from '../../views/follow.ts'
import { startLogs } from '../../views/logs.ts'
import { View } from '../../views/view.ts'
import type { Log } from '../../gateway/ports.ts'
import { decode, NewerRelease } from '../host/codec.ts'
import type { Blobs, Bus, Clock, Journal } from '../host/ports.ts'
import type { Recent } from '../host/recent.ts'
import type { Metrics } from '../metrics.ts'

interface ViewParts {
  readonly data: string
  /** Id of the organization. */
  readonly organization: string
  readonly partitions: number
  readonly journal: Journal
  /** The last sequence of a partition, when this process is its only writer. */
  readonly end: (partition: number) => number | undefined
  readonly recent: Recent
  readonly blobs: Blobs
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Milliseconds for which a worker whose connection was lost is listed as stale. */
  readonly stale: number
  /** Told when this release cannot read the journal. */
  doomed(error: Error): void
}
interface Question { readonly name: string; readonly project: string; readonly input: unknown; readonly fresh?: number; readonly within?: number }

/** Start the views of every partition. Returns a function that stops them and closes their files. */
export async function startViews({ data, organization, partitions, journal, end, recent, blobs, bus, clock, log, metrics, stale, doomed }: ViewParts): Promise<() => Promise<void>> {
  mkdirSync(join(data, 'views'), { recursive: true })
  const logs = startLogs((error) => log.warn({ err: error }, 'the logs of views are left to SQLite'))
  const running = await Promise.all(Array.from({ length: partitions }, async (_, partition) => {
    const file = join(data, 'views', `${partition}.sqlite`)
    const view = View.open(file, { now: clock.now, stale, organization: () => organization, saved: () => logs.saved(file) })
    const follower = new ViewFollower(view, {
      follow: (from, on) => journal.follow(partition, from, (batch) => on(batch.map((stored) => ({ ...stored, data: recent.take(stored.message_id) ?? stored.data })))),
      position: () => journal.position(partition),
      end: () => end(partition),
      decode: (bytes) => decode(bytes, blobs),
    }, {
      later: clock.later,
      hooks: {
        lag: (messages) => metrics.viewLag(partition, messages),
        alarm: (error) => {
          metrics.viewAlarm(partition)
          if (error instanceof NewerRelease) doomed(error)
          log.error({ err: error, partition }, 'a view cannot follow the journal')
        },
      },
    })
    await follower.start()
    metrics.onLook(async () => metrics.viewLag(partition, Math.max(0, (await journal.position(partition)).last - follower.position())))
    const asked = new Set<Promise<unknown>>()
    const unsubscribe = bus.subscribe(subjects.view(partition), (message) => {
      const { name, project, input, fresh, within } = message as Question
      const answer = follower.ask(name, project, input, fresh, within).finally(() => asked.delete(answer))
      asked.add(answer)
      return answer
    }, subjects.viewGroup)
    return async () => {
      unsubscribe()
      // What was asked is answered before the view leaves; each question has a time limit of its own.
      await Promise.allSettled([...asked])
      await follower.stop()
      view.close()
    }
  }))
  return async () => {
    await Promise.all(running.map((stop) => stop()))
    await logs.stop()
  }
}
