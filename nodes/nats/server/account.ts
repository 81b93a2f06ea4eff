/** The storage use and limit that JetStream reports for the account of this process. */
import { Empty } from '@nats-io/transport-node'
import { type Nats, REQUEST_TIMEOUT_MS } from './connect.ts'

interface Limits {
  readonly max_storage?: number
}
interface Tier {
  readonly storage?: number
  readonly limits?: Limits
}
interface Answer extends Tier {
  readonly tiers?: Readonly<Record<string, Tier>>
}

/**
 * Returns how much the account stores on disk, and its limit, in bytes. For an account with tiers,
 * returns the values of the fullest tier. Returns undefined when the account has no limit. NATS
 * counts messages before compression.
 * @throws Error when JetStream does not answer.
 */
export async function accountUse(
  nats: Pick<Nats, 'ask' | 'space'>,
): Promise<{ readonly used: number; readonly limit: number } | undefined> {
  const answer = (
    await nats.ask(`${nats.space.api}.INFO`, Empty, undefined, REQUEST_TIMEOUT_MS)
  ).json<Answer>()
  const tiers = [answer, ...Object.values(answer.tiers ?? {})].flatMap(({ storage, limits }) =>
    limits?.max_storage !== undefined && limits.max_storage > 0
      ? [{ used: storage ?? 0, limit: limits.max_storage }]
      : [],
  )
  return tiers.sort((a, b) => b.used / b.limit - a.used / a.limit)[0]
}
