/**
 * Waits for the conversion of the Office files of a session, so that a model request can contain
 * their text.
 */
import type { Artifact } from '../../protocol/artifacts/schema.ts'
import { isRefusal } from '../../protocol/errors.ts'
import type { World } from '../ports.ts'
import { sleep } from '../timing.ts'

/** Milliseconds between two reads of the state of a conversion. */
const POLL_MS = 200

/**
 * Returns a function that resolves to the state of the conversion of a file. The function waits
 * while the conversion is in progress.
 * @param session_id the session to which the files belong. Without one, the returned function
 * always resolves to undefined.
 * @param limitMs time after which no call waits any longer, in milliseconds from now.
 * @param signal ends the wait.
 */
export function conversionsOf(
  world: Pick<World, 'ask' | 'later' | 'monotonic'>,
  project: string,
  session_id: string | undefined,
  limitMs: number,
  signal?: AbortSignal,
): (artifact_id: string) => Promise<Artifact['conversion']> {
  const until = world.monotonic() + limitMs
  return async (artifact_id) => {
    if (session_id === undefined) return undefined
    const session = { project, kind: 'session', id: session_id } as const
    for (;;) {
      const file = await world.ask(session, 'attachment', { artifact_id })
      if (!file || isRefusal(file)) return undefined
      if (file.conversion?.state !== 'converting') return file.conversion
      if (signal?.aborted || world.monotonic() >= until) return file.conversion
      await sleep(world, POLL_MS)
    }
  }
}
