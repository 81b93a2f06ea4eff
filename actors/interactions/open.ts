/** Creation of interactions, by a client, a step of a run or a turn of a session. */

import type { Api } from '../../protocol/api.ts'
import { type JsonObject, parseTimestamp, timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { type FieldError, isRefusal, type Refusal, refuseFields } from '../../protocol/errors.ts'
import type { Chain } from '../../protocol/events/sources.ts'
import type { InteractionEvent, Source } from '../../protocol/interactions/events.ts'
import { reviewersOf } from '../../protocol/interactions/resolve.ts'
import { policyOf, runOf, targetsOf } from '../../protocol/interactions/rows.ts'
import type { Consumer, Interaction } from '../../protocol/interactions/schema.ts'
import type { InteractionCommands, InteractionOpened } from '../../protocol/internal.ts'
import type { SentUrl, UrlParts } from '../../protocol/masked-url.ts'
import { reservedTags } from '../../protocol/naming.ts'
import { extended } from '../../protocol/rules/extended.ts'
import type { Cause, Decided, Decision, Tell } from '../actor.ts'
import { newUrl, partsOf } from '../sealed-url.ts'
import type { InteractionState } from './state.ts'

type Create = Input<Api['interaction.create']>

/**
 * Creates an interaction for a client. The run that receives the answer, if any, is in the same
 * shard and is notified in the same commit.
 */
export const create =
  (brand: string) =>
  (
    state: InteractionState | null,
    input: Create & SentUrl,
    cause: Cause,
  ): Decision<InteractionEvent, Interaction> => {
    if (state) return { events: [], reply: state.record }
    const record = recordOf(input, cause)
    const faults = [...reservedTags(record.tags, brand), ...foreign(record, brand)]
    const fault = faults.length > 0 ? refuseFields(...faults) : faultOf(record, cause)
    if (fault) return fault
    const subscriber = record.consumer.http_subscriber
    const callback = subscriber
      ? newUrl('consumer.http_subscriber.callback_url', subscriber.callback_url, input.url_parts)
      : {}
    if (isRefusal(callback)) return callback
    const run = record.consumer.run
    const tells: Tell[] = run
      ? [
          {
            to: { kind: 'run', id: run.run_id },
            name: 'interaction.opened',
            input: announced(record),
          },
        ]
      : []
    return {
      events: asked(record, partsOf(callback)).events,
      tells,
      reply: (after: InteractionState) => after.record,
    }
  }

/** Creates an interaction for a step. The run itself records the interaction on its timeline. */
export function open(
  state: InteractionState | null,
  {
    run_id,
    signal_name,
    step,
    depth,
    chain,
    ...input
  }: InteractionCommands['interaction.open']['input'],
  cause: Cause,
): Decided<InteractionEvent, undefined> {
  if (state) return { events: [], reply: undefined }
  const record: Interaction = {
    ...born(cause),
    ...input,
    run_id,
    signal_name,
    consumer: { kind: 'run', run: { run_id, signal_name } },
    ...firstRound(input.resolution_policy),
  }
  return { ...asked(record, { step, depth, chain }), reply: undefined }
}

/** Creates an interaction for a turn. */
export function ask(
  state: InteractionState | null,
  { depth, withheld, approval, ...input }: InteractionCommands['interaction.ask']['input'],
  cause: Cause,
): Decided<InteractionEvent, undefined> {
  if (state) return { events: [], reply: undefined }
  const record: Interaction = { ...born(cause), ...input, ...firstRound(input.resolution_policy) }
  const { events } = asked(record, {
    session: input.consumer.agent_tool?.session_id,
    depth,
  })
  return {
    events: events.map((event) => ({
      ...event,
      ...(withheld && { withheld }),
      ...(approval && { approval }),
    })),
    reply: undefined,
  }
}

/** Returns the data that a run receives about an interaction that a client created for the run. */
const announced = ({
  id,
  kind,
  target_user_ids,
  title,
  expires_at,
}: Interaction): InteractionOpened => ({
  interaction_id: id,
  protocol: kind,
  targets: target_user_ids,
  title,
  ...(expires_at !== undefined && { expires_at }),
})

const asked = (
  interaction: Interaction,
  {
    step,
    session,
    depth = 0,
    chain,
    url_parts,
  }: {
    readonly step?: string | undefined
    readonly session?: string | undefined
    readonly depth?: number | undefined
    readonly chain?: Chain | undefined
  } & UrlParts = {},
): { events: Extract<InteractionEvent, { type: 'interaction.created' }>[] } => ({
  events: [
    {
      type: 'interaction.created',
      id: interaction.id,
      interaction,
      source: extended(sourceOf(interaction), { depth, ...(chain && { chain }) }),
      ...(step !== undefined && { step }),
      ...(session !== undefined && { session }),
      ...(url_parts && { url_parts }),
    },
  ],
})

const born = ({ self, at, principal }: Cause, created_by?: string) => ({
  id: self.id,
  status: 'pending' as const,
  responses: [],
  created_at: timestamp(at),
  updated_at: timestamp(at),
  ...(created_by !== undefined && { created_by }),
  lifecycle: [
    {
      at: timestamp(at),
      status: 'pending' as const,
      action: 'created' as const,
      ...(principal.type !== 'system' && { actor_id: principal.id }),
    },
  ],
})
const firstRound = ({ review }: Interaction['resolution_policy']) => review && { review_round: 1 }

function recordOf(input: Create, cause: Cause): Interaction {
  const {
    kind,
    title,
    message,
    description,
    subject,
    references,
    context,
    properties,
    tags,
    spec,
    require_all,
    delivery,
    expires_at,
  } = input
  const policy = policyOf(input)
  const run = runOf(input)
  return extended(born(cause, cause.principal.id), {
    kind,
    title: title ?? message ?? '',
    target_user_ids: targetsOf(input),
    resolution_policy: policy,
    consumer: consumerOf(input, run),
    ...(description !== undefined && { description }),
    ...(subject && { subject }),
    ...(references && { references }),
    ...(context && { context }),
    ...(properties && { properties }),
    ...(tags && { tags }),
    ...(spec && { spec }),
    ...(require_all !== undefined && { require_all }),
    ...(delivery && { delivery }),
    ...run,
    ...(expires_at !== undefined && {
      expires_at: timestamp(parseTimestamp(expires_at) ?? cause.at),
    }),
    ...firstRound(policy),
  })
}
function consumerOf({ consumer }: Create, run: Consumer['run']): Consumer {
  if (run) return { kind: 'run', run }
  return typeof consumer === 'object' ? consumer : { kind: consumer ?? 'none' }
}

/** Returns the field errors for a subject or references of a kind that is not allowed. */
function foreign({ subject, references = [] }: Interaction, brand: string): FieldError[] {
  const expected = ['external_url', `${brand.toLowerCase()}_entity`]
  const all = [
    ...(subject ? [{ field: 'subject.kind', kind: subject.kind }] : []),
    ...references.map(({ kind }, index) => ({ field: `references[${index}].kind`, kind })),
  ]
  return all
    .filter(({ kind }) => !expected.includes(kind))
    .map(({ field, kind }) => ({
      field,
      message: `must be one of: ${expected.join(', ')}`,
      expected,
      actual: kind,
    }))
}

/**
 * Refuses an expiry in the past. Without named reviewers, the creator is the reviewer. A review is
 * therefore refused if it names no reviewers and the creator is also a target.
 */
function faultOf(record: Interaction, { at }: Cause): Refusal | undefined {
  const {
    expires_at,
    resolution_policy: { review },
    target_user_ids,
  } = record
  if (expires_at !== undefined && (parseTimestamp(expires_at) ?? 0) <= at)
    return refuseFields({
      field: 'expires_at',
      message: 'must be in the future',
      actual: expires_at,
    })
  if (
    review &&
    !review.reviewer_user_ids?.length &&
    reviewersOf(record).some((id) => target_user_ids.includes(id))
  ) {
    return refuseFields({
      field: 'resolution_policy.review.reviewer_user_ids',
      message:
        'must name reviewers, because a creator who is a target cannot review its own answer',
    })
  }
  return undefined
}

function sourceOf({
  id,
  kind,
  status,
  title,
  description,
  target_user_ids,
  consumer,
  run_id,
  expires_at,
  created_by,
  context,
  spec,
}: Interaction): Omit<Source, 'depth' | 'chain'> {
  const session_id = consumer.agent_tool?.session_id
  const event: JsonObject = {
    interaction_id: id,
    kind,
    status,
    title,
    ...(description !== undefined && { description }),
    target_user_ids,
    consumer_kind: consumer.kind,
    ...(run_id !== undefined && { run_id }),
    ...(session_id !== undefined && { session_id }),
    ...(expires_at !== undefined && { expires_at }),
    ...(created_by !== undefined && { created_by }),
    ...(context && { context }),
    ...(spec && { spec }),
  }
  return { event, meta: { interaction_id: id, kind, target_user_ids } }
}
