/**
 * Measures how fast a project's event stream is read from its beginning, by one follower and by
 * several concurrent followers.
 */
import { rmSync } from 'node:fs'
import { fill } from './load/fill.ts'
import { follow } from './load/sse.ts'
import { type Baton, newFolder, startBaton } from './support/baton.ts'
import { costOf, type Figures, inTurn, pause, type Terms } from './support/measure.ts'
import { cell, note, table, whole } from './support/table.ts'

export const about =
  'Replay of a project’s event stream from its beginning: events per second, for 1 and for 4 followers'

const SEVERAL = 4
/** Milliseconds without an event after which a stream counts as read completely. */
const SILENCE_MS = 2000
const REBUILD_TIMEOUT_MS = 1_800_000
const FRAME = '\nevent: '

/**
 * Reads a stream until `most` events have arrived, or no event arrives for `SILENCE_MS`.
 * @returns the number of events, and the milliseconds until the last one.
 */
async function read({ port, key }: Baton, most: number): Promise<{ events: number; took: number }> {
  const started = performance.now()
  let events = 0
  let last = started
  let all = () => {}
  const complete = new Promise<void>((done) => {
    all = done
  })
  const stop = await follow(port, key, '/v1/projects/default/runs/events?since=0', (text) => {
    for (let at = text.indexOf(FRAME); at >= 0; at = text.indexOf(FRAME, at + FRAME.length))
      events++
    last = performance.now()
    if (events >= most) all()
  })
  const silent = async () => {
    while (performance.now() - last < SILENCE_MS) await pause(50)
  }
  await Promise.race([complete, silent()])
  stop()
  return { events, took: last - started }
}

/**
 * Measures concurrent followers. Their rate is the total number of events per second until the
 * slowest follower has read all events.
 */
async function several(server: Baton, followers: number, events: number): Promise<Figures> {
  const { result: all, cpu } = await costOf(
    () => server.processes,
    () => Promise.all(Array.from({ length: followers }, () => read(server, events))),
  )
  const total = all.reduce((sum, one) => sum + one.events, 0)
  if (total !== events * followers)
    throw new Error(`${followers} followers got ${total} events instead of ${events} each`)
  return {
    rate: total / (Math.max(...all.map(({ took }) => took)) / 1000),
    server: (cpu('server') * 1e6) / total,
    load: (cpu('load') * 1e6) / total,
  }
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const runs = terms.quick ? 10_000 : 100_000
  const data = newFolder()
  try {
    const { frames } = await fill(data, runs, terms.say)
    const server = await startBaton({
      sync: 'always',
      data,
      within: REBUILD_TIMEOUT_MS,
      profile: terms.profile,
    })
    try {
      const { events } = await read(server, Number.POSITIVE_INFINITY)
      terms.say(
        `${whole(events)} events, of which the ${whole(runs)} runs written directly have ${whole(frames)}`,
      )
      const rows = [1, SEVERAL].map((followers): [string, () => Promise<Figures>] => [
        `${followers} follower${followers > 1 ? 's at once, together' : ''}`,
        () => several(server, followers, events),
      ])
      const measured = await inTurn(rows, terms, ({ rate = 0 }) => `${whole(rate)} events/s`)
      const lines = measured.map(([name, { rate = 0, server: ours = 0, load = 0 }]) => [
        name,
        whole(rate),
        cell(ours.toFixed(1), load.toFixed(1)),
      ])
      return (
        table(
          [
            `${whole(events)} events from the beginning`,
            'events/s',
            'CPU µs per event: server / follower',
          ],
          [...lines, ['*target*', '≥ 50,000', '']],
        ) +
        note(
          'Every event is counted; none may be missing. ' +
            'The journal is written directly; its sync setting does not matter to a replay.',
        )
      )
    } finally {
      await server.stop()
    }
  } finally {
    rmSync(data, { recursive: true, force: true })
  }
}
