/**
 * A small map with compare-and-set over a KV bucket. Keys are stored encoded, so any text is a
 * valid key. Reads are answered by the leader. A deleted key leaves no marker that could block its
 * next creation.
 */
import { token } from '../../../protocol/subjects.ts'
import type { Registry } from '../../host/ports.ts'
import { codeOf, codes, isNoResponders, isWrongSequence } from '../failures.ts'
import { createLeaderStepDown } from '../leader-stepdown.ts'
import { type Nats, REQUEST_TIMEOUT_MS, WRITE_TIMEOUT_MS } from '../server/connect.ts'
import { isMarker, newest } from './newest.ts'
import { onlyAfter } from './publish.ts'

const untoken = (key: string): string =>
  key === '=' ? '' : decodeURIComponent(key.replaceAll('=', '%'))

/**
 * Creates the registry over one bucket. All its functions throw when the leader cannot be reached.
 * The outcome of a `put` is then unknown.
 * @param name name of the bucket.
 * @param restore recreates the bucket when the servers have lost it: a restart of all servers
 *   deletes a bucket in memory.
 * @param spell encodes a key for storage; by default, as one token. `list` works only with the
 *   default.
 */
export function createRegistry(
  nats: Nats,
  name: string,
  restore?: () => Promise<void>,
  spell: (key: string) => string = token,
): Registry {
  const stream = `KV_${nats.space.bucket(name)}`
  const stepDown = createLeaderStepDown(nats)
  /** The keys that the last `list` of each prefix found. */
  const last = new Map<string, readonly string[]>()

  const restoring = async <T>(run: () => Promise<T>): Promise<T> => {
    try {
      return await run()
    } catch (error) {
      // A publish to a missing stream fails with "no responders", not with an API error.
      const gone = restore && (codeOf(error) === codes.streamNotFound || isNoResponders(error))
      if (!gone) throw error
      await restore()
      return run()
    }
  }
  const subjectOf = (key: string): string => nats.space.storedKey(name, spell(key))
  const read: Registry['get'] = async (key) => {
    const entry = await newest(nats, stream, subjectOf(key), REQUEST_TIMEOUT_MS)
    return entry && !isMarker(entry)
      ? { value: new TextDecoder().decode(entry.data), revision: entry.sequence }
      : undefined
  }
  return {
    get: (key) => restoring(() => read(key)),
    put: (key, value, revision) =>
      restoring(async () => {
        const subject = nats.space.publishedKey(name, spell(key))
        const data = new TextEncoder().encode(value)
        try {
          return await nats.publish(subject, data, onlyAfter(revision), WRITE_TIMEOUT_MS)
        } catch (error) {
          if (!isWrongSequence(error)) throw error
          if (
            ((await newest(nats, stream, subjectOf(key), REQUEST_TIMEOUT_MS))?.sequence ?? 0) ===
            revision
          )
            stepDown(stream, subjectOf(key))
          return undefined
        }
      }),
    delete: (key) =>
      restoring(async () => {
        await nats.manager.streams.purge(stream, { filter: subjectOf(key) })
      }),
    list: (prefix) =>
      restoring(async () => {
        // Keys seldom change. The values of the keys that the last `list` found are therefore read
        // while the server lists the current keys.
        const expected = new Map((last.get(prefix) ?? []).map((key) => [key, read(key)] as const))
        for (const reading of expected.values()) reading.catch(() => {})
        const { state } = await nats.manager.streams.info(stream, {
          subjects_filter: nats.space.storedKey(name, '>'),
        })
        const keys = Object.keys(state.subjects ?? {})
          .map((subject) => untoken(subject.slice(nats.space.storedKey(name, '').length)))
          .filter((key) => key.startsWith(prefix))
          .sort()
        last.set(prefix, keys)
        const entries = await Promise.all(
          keys.map(async (key) => ({ key, found: await (expected.get(key) ?? read(key)) })),
        )
        return entries.flatMap(({ key, found }) => (found ? [{ key, ...found }] : []))
      }),
  }
}
