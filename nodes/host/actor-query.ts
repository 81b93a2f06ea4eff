/**
 * Answers queries (`ask`) to actors. The shard's loop sends the answer after the commit of the
 * batch, so the answer contains committed state only. Only a node whose lease is fresh may answer,
 * because otherwise a newer owner could have changed the actor.
 */
import { refuse } from '../../protocol/errors.ts'
import { type HostDeps, notOwner } from './deps.ts'
import type { MailboxMessage } from './mailbox-message.ts'
import type { ActorCache } from './memory/actor-cache.ts'

/**
 * Computes the answer to a query. The returned function sends it.
 * @param now Unix milliseconds, passed to the query.
 * @throws Unreadable when the actor's snapshot cannot be read.
 * @throws ForeignSnapshot when another release wrote the snapshot in an unknown format.
 */
export async function answerQuery(
  deps: HostDeps,
  instances: Pick<ActorCache, 'get'>,
  { to, name, input, answer }: Extract<MailboxMessage, { type: 'ask' }>,
  now: number,
): Promise<() => void> {
  if (!deps.fresh()) return () => answer(notOwner)
  const found = instances.get(to)
  const instance = found instanceof Promise ? await found : found
  const arm = instance.actor.ask?.[name]
  if (!arm)
    return () => answer(refuse('internal', undefined, `${instance.kind} has no query ${name}`))
  try {
    const result = arm(instance.state as never, input as never, now)
    const text = result === undefined ? undefined : JSON.stringify(result)
    return () => answer({ reply: text === undefined ? undefined : JSON.parse(text) })
  } catch (error) {
    deps.log.error(
      { event: 'actor_query_failed', err: error, kind: to.kind, id: to.id, ask: name },
      'actor query failed',
    )
    return () => answer(refuse('internal'))
  }
}
