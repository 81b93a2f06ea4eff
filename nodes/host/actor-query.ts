/**
 * Answers queries (`ask`) to actors. The shard's loop sends the answer after the commit of the
 * batch, so the answer contains committed state only. A node answers only while its lease is fresh.
 * Otherwise, a newer owner of the shard may already have changed the actor.
 */
import type { Command } from '../../protocol/entry.ts'
import { isRefusal, refuse } from '../../protocol/errors.ts'
import { type HostDeps, notOwner, type ShardAnswer } from './deps.ts'
import type { AskMessage } from './mailbox-message.ts'
import type { ActorCache } from './memory/actor-cache.ts'
import { type ActorInstance, answerToRepeat } from './memory/actor-instance.ts'

/** The name of the query whether an actor of any kind remembers a command. */
export const REPEAT_QUERY = '$repeat'
type RepeatQuery = Pick<Command, 'command_id' | 'fingerprint'>

/**
 * Answers whether the actor remembers a command: with its reply as `{ reply }`, with the refusal of
 * another request under the same idempotency key, or without a reply.
 */
function answerRepeat(instance: ActorInstance, asked: RepeatQuery): ShardAnswer {
  const known = answerToRepeat(instance, asked)
  return known && !isRefusal(known) ? { reply: known } : (known ?? { reply: undefined })
}

/**
 * Computes the answer to a query.
 * @param now Unix milliseconds, passed to the query.
 * @throws Unreadable when the actor's snapshot cannot be read.
 * @throws ForeignSnapshot when another release wrote the snapshot in an unknown format.
 */
export async function answerQuery(
  deps: HostDeps,
  instances: Pick<ActorCache, 'find' | 'get'>,
  { to, key, name, input }: AskMessage,
  now: number,
): Promise<ShardAnswer> {
  if (!deps.fresh()) return notOwner
  const instance = instances.find(key) ?? (await instances.get(to))
  if (name === REPEAT_QUERY) return answerRepeat(instance, input as RepeatQuery)
  const arm = instance.actor.ask?.[name]
  if (!arm) return refuse('internal', undefined, `${instance.kind} has no query ${name}`)
  try {
    const result = arm(instance.state as never, input as never, now)
    const text = result === undefined ? undefined : JSON.stringify(result)
    return { reply: text === undefined ? undefined : JSON.parse(text) }
  } catch (error) {
    deps.log.error(
      { event: 'actor_query_failed', err: error, kind: to.kind, id: to.id, ask: name },
      'actor query failed',
    )
    return refuse('internal')
  }
}
