/**
 * Calls to a definition resolver: the request, the interpretation of the response, and the choice
 * of the resulting definition. All functions are pure; `nodes/resolver/` makes the calls.
 *
 * Invariants:
 * C1. The result is either a definition or a failure. An empty definition never replaces a
 *     definition that could not be resolved.
 * C2. Only definitions that the resolver sent or confirmed are used. Until a definition reaches the
 *     age `revalidate_after_s`, it is used without a call. If a call gets no valid response and
 *     `on_unavailable` is `last_known_good`, the stored definition is used up to the age
 *     `stale_max_age_s`.
 * C3. After `unknown_agent`, the stored definition of the agent is not used again.
 */
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { InlineConfig, InlineSkill, InlineToolkit } from '../agents/inline.ts'
import { MemoryContext } from '../agents/schema.ts'
import { getOwn } from '../lookup.ts'
import { isJsonObject } from '../rules/json-object.ts'
import { skillLimits } from '../skills/schema.ts'
import { toolkitLimits } from '../toolkits/schema.ts'
import type { ResolverSettings } from './schema.ts'

/** Maximum size of a response body, in bytes. */
export const MAX_ANSWER_BYTES = 1_048_576
/** Maximum length of a digest, and of an error code, in characters. */
const MAX_DIGEST_LENGTH = 256

/** The origin of the turn or run that needs a definition. */
export type TriggerKind =
  | 'invoke'
  | 'turn'
  | 'manual'
  | 'api'
  | 'schedule'
  | 'event'
  | 'http'
  | 'signal'
  | 'loop'

/** Returns the selector that a resolver uses to identify an agent. */
export const selectorOf = ({
  name,
  external_ref,
}: {
  readonly name: string
  readonly external_ref?: string
}): string => `agent/${external_ref ?? name}`

/** The data of a call. */
export interface Callout {
  readonly org_id: string
  readonly project: { readonly id: string; readonly external_ref?: string }
  readonly trigger: TriggerKind
  readonly selector: string
  /** The digest of the stored definition; absent when no definition is stored. */
  readonly known_digest?: string
}
/** Returns the body of a request. */
export const requestOf = ({ org_id, project, trigger, selector, known_digest }: Callout) => ({
  protocol_version: 1,
  org_id,
  project: {
    id: project.id,
    ...(project.external_ref !== undefined && { external_ref: project.external_ref }),
  },
  trigger: { kind: trigger },
  refs: [{ selector, ...(known_digest !== undefined && { known_digest }) }],
})

// Later versions of resolvers may send additional fields, so only the known fields are checked.
const { instructions, model, effort, timeout_seconds } = InlineConfig.properties
const ResolvedValue = Type.Object({
  agent: Type.Optional(
    Type.Object({
      instructions,
      model,
      effort,
      timeout_seconds,
      memory_context: Type.Optional(Type.Object(MemoryContext.properties)),
    }),
  ),
  toolkits: Type.Optional(
    Type.Array(Type.Object(InlineToolkit.properties), { maxItems: toolkitLimits.assigned }),
  ),
  skills: Type.Optional(
    Type.Array(Type.Object(InlineSkill.properties), { maxItems: skillLimits.assigned }),
  ),
})
/** A definition that a resolver sent. For absent fields, the values of the stored agent apply. */
type ResolvedDefinition = InlineConfig

/** The response from a resolver for one selector. */
export type Entry =
  | { readonly kind: 'bundle'; readonly digest: string; readonly definition: ResolvedDefinition }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'unknown_agent' }
  /** Any other error from the resolver, with its code. */
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'missing' }
  /** The response does not follow the protocol. */
  | { readonly kind: 'invalid'; readonly reason: string }

const invalid = (reason: string): Entry => ({ kind: 'invalid', reason })

/** Interprets the parsed body of a response with a 2xx status. */
export function entryOf(body: unknown, selector: string): Entry {
  if (!isJsonObject(body)) return invalid('the body is not an object')
  const { protocol_version, resolved } = body
  if (protocol_version !== 1) return invalid('protocol_version is not 1')
  if (!isJsonObject(resolved)) return invalid('resolved is not an object')
  const entry = getOwn(resolved, selector)
  if (entry === undefined) return { kind: 'missing' }
  if (!isJsonObject(entry)) return invalid('the entry is not an object')
  if (entry['error'] !== undefined) return failure(entry['error'])
  if (entry['unchanged'] !== undefined)
    return entry['unchanged'] === true ? { kind: 'unchanged' } : invalid('unchanged is not true')
  const { digest, value } = entry
  if (typeof digest !== 'string' || digest === '' || digest.length > MAX_DIGEST_LENGTH)
    return invalid(`digest is not a text of 1 to ${MAX_DIGEST_LENGTH} characters`)
  if (!Value.Check(ResolvedValue, value)) {
    const [first] = Value.Errors(ResolvedValue, value)
    return invalid(`value${first?.instancePath ?? ''} ${first?.message ?? 'is not valid'}`)
  }
  return { kind: 'bundle', digest, definition: definitionOf(value) }
}
function failure(error: unknown): Entry {
  const code = isJsonObject(error) ? error['code'] : error
  if (typeof code !== 'string') return invalid('error has no code')
  return code === 'unknown_agent'
    ? { kind: 'unknown_agent' }
    : { kind: 'error', code: code.slice(0, MAX_DIGEST_LENGTH) }
}
/** Converts a resolved value to an inline config, without unknown fields. */
function definitionOf({
  agent = {},
  toolkits: kits,
  skills: abilities,
}: Static<typeof ResolvedValue>): ResolvedDefinition {
  const { mode, max_bytes } = agent.memory_context ?? {}
  return {
    ...(agent.instructions !== undefined && { instructions: agent.instructions }),
    ...(agent.model !== undefined && { model: agent.model }),
    ...(agent.effort !== undefined && { effort: agent.effort }),
    ...(agent.timeout_seconds !== undefined && { timeout_seconds: agent.timeout_seconds }),
    ...(mode !== undefined && {
      memory_context: { mode, ...(max_bytes !== undefined && { max_bytes }) },
    }),
    ...(kits && {
      toolkits: kits.map(({ name, actions }) => ({ name, ...(actions && { actions }) })),
    }),
    ...(abilities && {
      skills: abilities.map(({ name, description, body }) => ({
        name,
        ...(description !== undefined && { description }),
        ...(body !== undefined && { body }),
      })),
    }),
  }
}

/** A stored definition. `at`: Unix milliseconds at which the resolver sent or confirmed it. */
export interface KnownDefinition {
  readonly digest: string
  readonly definition: ResolvedDefinition
  readonly at: number
}
/** A definition as a run stores it and a turn uses it. */
export type Bundle = Pick<KnownDefinition, 'digest' | 'definition'>
/** The outcome of a call: the response for the selector, or the reason why there is no response. */
export type CalloutOutcome = Entry | { readonly kind: 'unreachable'; readonly reason: string }

/** The error types of turns that fail before they start. */
type ResolverFailure = 'unknown_agent' | 'definition_resolver_unavailable'

/** The definition of an agent, or the reason why no definition can be used. */
export type Resolution =
  /** `stale`: the definition is the last known one, because the resolver is unavailable. */
  | { readonly use: KnownDefinition; readonly stale?: true }
  | { readonly fail: ResolverFailure; readonly reason: string }

type Rules = Pick<ResolverSettings, 'revalidate_after_s' | 'stale_max_age_s' | 'on_unavailable'>
/**
 * Whether a stored definition can be used without a call.
 * @param now Unix milliseconds.
 */
export const isFresh = (
  { revalidate_after_s }: Rules,
  known: Pick<KnownDefinition, 'at'> | undefined,
  now: number,
): boolean => known !== undefined && now - known.at < revalidate_after_s * 1000

/**
 * Returns the definition to use after a call, or the reason why none can be used.
 * @param known the stored definition.
 * @param now Unix milliseconds.
 */
export function resolutionOf(
  rules: Rules,
  known: KnownDefinition | undefined,
  outcome: CalloutOutcome,
  now: number,
): Resolution {
  switch (outcome.kind) {
    case 'bundle':
      return { use: { digest: outcome.digest, definition: outcome.definition, at: now } }
    case 'unchanged':
      return known
        ? { use: { ...known, at: now } }
        : {
            fail: 'definition_resolver_unavailable',
            reason: 'the answer is unchanged, but no definition is stored',
          }
    case 'unknown_agent':
      return { fail: 'unknown_agent', reason: 'the resolver does not know the agent' }
    default:
      return withoutAnswer(rules, known, reasonOf(outcome), now)
  }
}
function withoutAnswer(
  { on_unavailable, stale_max_age_s }: Rules,
  known: KnownDefinition | undefined,
  reason: string,
  now: number,
): Resolution {
  const usable =
    on_unavailable === 'last_known_good' &&
    known !== undefined &&
    (stale_max_age_s === 0 || now - known.at <= stale_max_age_s * 1000)
  return usable ? { use: known, stale: true } : { fail: 'definition_resolver_unavailable', reason }
}
/** Returns the reason why an outcome contains no definition, for logs and messages to operators. */
export function reasonOf(outcome: CalloutOutcome): string {
  switch (outcome.kind) {
    case 'error':
      return `the resolver answered the error ${outcome.code}`
    case 'missing':
      return 'the answer has no entry for the agent'
    case 'invalid':
    case 'unreachable':
      return outcome.reason
    default:
      return outcome.kind
  }
}
