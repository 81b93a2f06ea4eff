/**
 * Preparations of the rows that publish events. The gateway assigns the ids of the events, so that
 * a repeat under an idempotency key refers to the same events. The command is repeated until the
 * project's `events` actor has decided which events are duplicates.
 */

import type { Origin } from '../../protocol/entry.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Named } from '../../protocol/events/rows.ts'
import type { CommandReply } from '../../protocol/queries/commands.ts'
import type { Call, Edge } from '../call.ts'
import type { Identity } from '../http/idempotency.ts'
import type { Prepare, Prepared } from '../prepare.ts'
import { publishIdempotently } from './publish-idempotently.ts'

const named = (make: (index: number) => string, count: number): Named => ({
  ids: Array.from({ length: count }, (_, index) => make(index)),
})

/** A request that publishes events. */
interface Publication {
  readonly edge: Edge
  readonly call: Call
  readonly identity: Identity
  readonly origin: Origin
}
/**
 * Returns the reply of the `events` actor once the actor has decided which events are duplicates.
 * An actor without the necessary deduplication keys changes nothing and replies `unsure`. The
 * command is then repeated under the same command id, with the keys from a view.
 */
async function decided<N extends 'event.publish' | 'event.publish_many'>(
  { edge, call, identity, origin }: Publication,
  name: N,
  input: Named,
  reply: CommandReply<'events', N>,
): Promise<CommandReply<'events', N> | Refusal> {
  const { world } = edge
  const { project, query, body, slots } = call
  const { command_id, fingerprint } = identity
  if (!project) return reply
  const command = {
    project: project.id,
    kind: 'events',
    id: project.id,
    command_id,
    name,
    origin,
    ...(fingerprint !== undefined && { fingerprint }),
  } as const
  const outcome = await publishIdempotently(
    world,
    project.id,
    (recalled) =>
      world.command({
        ...command,
        input: { ...query, ...body, ...slots, ...input, ...(recalled && { recalled }) },
      }),
    { reply },
  )
  return isRefusal(outcome) ? outcome : outcome.reply
}

const one: Prepare = (edge, call, identity, origin): Prepared => {
  const input = named(() => edge.world.id('source_event', identity.seed), 1)
  return {
    input: { ...input },
    answer: (reply) =>
      decided(
        { edge, call, identity, origin },
        'event.publish',
        input,
        reply as CommandReply<'events', 'event.publish'>,
      ),
  }
}
const many: Prepare = (edge, call, identity, origin): Prepared => {
  const { seed } = identity
  const input = named(
    (index) => edge.world.id('source_event', seed && `${seed} ${index}`),
    (call.body['events'] as readonly unknown[]).length,
  )
  const all = { items: input.ids.map((source_event_id) => ({ source_event_id })) }
  return {
    input: { ...input },
    answer: async (first) => {
      const reply = await decided(
        { edge, call, identity, origin },
        'event.publish_many',
        input,
        first as CommandReply<'events', 'event.publish_many'>,
      )
      return isRefusal(reply) || reply.items.length > 0 ? reply : all
    },
  }
}

/** Preparations of the event rows, by row name. */
export const eventPreparations: Readonly<Record<string, Prepare>> = {
  'event.publish': one,
  'event.publish_many': many,
}
