/**
 * Follows a run and records every event, so that the tour can check afterwards that no event was
 * missed or repeated.
 */
import { plural } from '../../protocol/naming.ts'
import type { RunEventRecord } from '../../protocol/runs/schema.ts'
import type { Client } from '../client.ts'
import { followRun, timeline } from '../follow.ts'
import type { Show } from './show.ts'

export interface Watched {
  readonly run: string
  /** Sequence numbers of the events in order of arrival, including repeats. */
  readonly seen: readonly number[]
  /** Number of times the stream was reopened. */
  readonly interruptions: number
}
/** Differences between the followed events and the stored timeline. */
export interface Unequal {
  readonly run: string
  readonly missed: readonly number[]
  readonly repeated: readonly number[]
  readonly disordered: boolean
}

/**
 * Follows a run to its end.
 * @param received called once for each event, even if the stream repeats the event.
 * @param interrupted called with the reason for every interruption of the stream.
 * @throws BatonError if the service refuses the request; the abort reason if `signal` aborts.
 */
export async function watch(
  client: Client,
  run: string,
  signal: AbortSignal,
  received: (event: RunEventRecord) => void,
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
    received(data)
  }
  signal.throwIfAborted()
  return { run, seen, interruptions }
}

/**
 * Compares the followed events with the timeline that the server stores now. Returns undefined if
 * they are equal.
 * @throws BatonError if the timeline cannot be read.
 */
async function compare(client: Client, { run, seen }: Watched): Promise<Unequal | undefined> {
  return unequal(
    run,
    seen,
    (await timeline(client, run)).map(({ sequence }) => sequence),
  )
}

/** Returns the differences between two lists of sequences; undefined if they are equal. */
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

/**
 * Compares all followed runs with their stored timelines, prints the result, and returns whether
 * all are equal.
 * @throws BatonError if a timeline cannot be read.
 */
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
      `ok  ${plural(watched.length, 'timeline')} with ${events} events ` +
        `${watched.length === 1 ? 'was' : 'were'} followed without a gap or a duplicate` +
        `${interruptions > 0 ? `, over ${interruptions} interruptions` : ''}`,
    )
  for (const { run, missed, repeated, disordered } of faults)
    shown.line(
      `MISMATCH: the timeline of ${run}: missed ${missed.join(', ') || 'nothing'}, ` +
        `repeated ${repeated.join(', ') || 'nothing'}${disordered ? ', out of order' : ''}`,
    )
  return faults.length === 0
}
