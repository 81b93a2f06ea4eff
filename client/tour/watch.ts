/** Following a run while keeping count, so that afterwards it can be proved that nothing was missed and nothing came twice. */
import type { RunEventRecord } from '../../protocol/runs/schema.ts'
import type { Client } from '../client.ts'
import { followRun, timeline } from '../follow.ts'
import type { Show } from './show.ts'

export interface Watched {
  readonly run: string
  /** Sequences in the order they came, repeats included. */
  readonly seen: readonly number[]
  /** Times that the stream had to be opened again. */
  readonly interruptions: number
}
/** What differs between what was followed and what is on record. */
export interface Unequal {
  readonly run: string
  readonly missed: readonly number[]
  readonly repeated: readonly number[]
  readonly disordered: boolean
}

/** Follow a run to its end. @param told hears every event once. @throws BatonError */
export async function watch(
  client: Client,
  run: string,
  signal: AbortSignal,
  told: (event: RunEventRecord) => void,
  interrupted: (reason: string) => void,
): Promise<Watched> {
  const seen: number[] = []
  let interruptions = 0
  const onReconnect = (reason: string) => {
    interruptions++
    interrupted(reason)
  }
  for await (const { id, data } of followRun(client, run, {
    signal,
    onReconnect,
    onRepeat: (again) => seen.push(again),
  })) {
    if (id === undefined) continue
    seen.push(id)
    told(data)
  }
  signal.throwIfAborted()
  return { run, seen, interruptions }
}

/** Compare with the timeline as the server has it now; undefined when they are the same. @throws BatonError */
async function compare(client: Client, { run, seen }: Watched): Promise<Unequal | undefined> {
  return unequal(
    run,
    seen,
    (await timeline(client, run)).map(({ sequence }) => sequence),
  )
}

/** What differs between two lists of sequences. */
export function unequal(
  run: string,
  seen: readonly number[],
  recorded: readonly number[],
): Unequal | undefined {
  const known = new Set(seen)
  const missed = recorded.filter((sequence) => !known.has(sequence))
  const repeated = seen.filter((sequence, index) => seen.indexOf(sequence) !== index)
  const disordered =
    seen.some((sequence, index) => index > 0 && sequence < (seen[index - 1] ?? 0)) ||
    seen.some((sequence) => !recorded.includes(sequence))
  return missed.length > 0 || repeated.length > 0 || disordered
    ? { run, missed, repeated, disordered }
    : undefined
}

/** Compare all of them, and say what came of it; whether they are the same. @throws BatonError */
export async function checkTimelines(
  at: Client,
  shown: Show,
  watched: readonly Watched[],
): Promise<boolean> {
  const faults = (await Promise.all(watched.map((one) => compare(at, one)))).filter(
    (fault) => fault !== undefined,
  )
  const events = watched.reduce((sum, { seen }) => sum + seen.length, 0)
  const interruptions = watched.reduce((sum, one) => sum + one.interruptions, 0)
  if (faults.length === 0)
    shown.line(
      `ok  ${watched.length} timelines with ${events} events were followed without a hole or a repeat${interruptions > 0 ? `, over ${interruptions} interruptions` : ''}`,
    )
  for (const { run, missed, repeated, disordered } of faults)
    shown.line(
      `NOT THE SAME: the timeline of ${run}: missed ${missed.join(', ') || 'nothing'}, repeated ${repeated.join(', ') || 'nothing'}${disordered ? ', out of order' : ''}`,
    )
  return faults.length === 0
}
