/** Reads each session through each gateway after all faults, when everything is at rest. */
import { readTranscript, Transcript } from '../../../client/transcript.ts'
import type { Asker, Json } from '../ask.ts'
import { shownIn, textOf } from './follower.ts'
import type { Followed, TurnHistory } from './history.ts'
import type { TurnLoad } from './load.ts'

interface Options {
  readonly load: TurnLoad
  readonly asker: Asker
  readonly urls: readonly string[]
  readonly key: string
}
/** The maximum time that a follower has to catch up, in milliseconds. */
const CATCH_UP_MS = 15_000
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/** Reads all sessions, and stores the final state of each turn as `recorded` in its message. */
export async function readSessions({
  load,
  asker,
  urls,
  key,
}: Options): Promise<Pick<TurnHistory, 'followed' | 'onRecord' | 'oddities'>> {
  const followed: Followed[] = []
  const onRecord = new Map<number, readonly string[]>()
  const oddities: string[] = []
  for (const [session, { session_id, cursor, follower }] of load.sessions) {
    const readings: Transcript[] = []
    for (const url of urls)
      readings.push(
        await patiently(() => readTranscript({ url, key, session_id }, new Transcript(cursor))),
      )
    const fresh = readings[0] as Transcript
    for (
      const end = performance.now() + CATCH_UP_MS;
      follower.transcript.cursor !== fresh.cursor && performance.now() < end;
    )
      await pause(20)
    followed.push({
      session,
      connections: follower.connections,
      lost: follower.lost,
      folded: textOf(follower.transcript),
      fresh: readings.map(textOf),
      back: follower.back,
    })
    if (follower.fault !== undefined)
      oddities.push(`the follower of session ${session} gave up: ${follower.fault}`)
    for (const sent of load.sent)
      if (sent.session === session && sent.turn !== undefined)
        sent.recorded = shownIn(fresh, sent.turn)
    const page = await asker.ask(
      { method: 'GET', path: `/projects/default/sessions/${session_id}/turns?limit=200` },
      false,
    )
    onRecord.set(
      session,
      ((page?.body['items'] ?? []) as readonly Json[]).map((turn) => String(turn['id'])),
    )
  }
  return { followed, onRecord, oddities }
}
/** Repeats a read up to 50 times, because a restarted gateway may not be ready yet. */
async function patiently<T>(read: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await read()
    } catch (error) {
      if (attempt === 50) throw error
      await pause(200)
    }
  }
}
