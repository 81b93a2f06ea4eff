/** The definition of a loop as its editor shows it, and the changes that a save sends. */
import type { Authored, Loop, Trigger } from '../../../protocol/loops/schema.ts'
import { canonicalJson } from '../../../protocol/rules/canonical-json.ts'
import { loopMembers } from '../build/checks.ts'

/** Returns the members of a loop that belong to its definition. */
export const definitionOf = (loop: Loop): Authored =>
  Object.fromEntries(
    loopMembers.flatMap((name) => (loop[name] === undefined ? [] : [[name, loop[name]]])),
  ) as Authored

/**
 * Returns the empty value with which an update removes a member; undefined if it cannot be removed.
 */
function removal(before: unknown): unknown {
  if (Array.isArray(before)) return []
  return typeof before === 'object' ? {} : typeof before === 'string' ? '' : undefined
}
/** Members that are reset to a default instead of being removed, with their defaults. */
const defaults: Readonly<Record<string, unknown>> = { concurrency: 'allow' }

/**
 * Returns the members of an update that turns one definition into another. Unchanged members are
 * left out, because an update creates a new version even if it changes no value.
 */
export function changesOf(before: Authored, after: Authored): Partial<Authored> {
  const changes = loopMembers.flatMap((name): [string, unknown][] => {
    const [old, next] = [before[name], after[name]]
    if (JSON.stringify(old) === JSON.stringify(next)) return []
    if (next !== undefined) return [[name, next]]
    const gone = defaults[name] ?? removal(old)
    return gone === undefined ? [] : [[name, gone]]
  })
  return Object.fromEntries(changes) as Partial<Authored>
}

/**
 * The state of a trigger, without its definition. Lists of states are in the order of the triggers
 * in the loop's definition.
 */
export interface Standing {
  readonly id: string
  readonly key?: string
  readonly next_fire_at?: string
}
/**
 * Finds the state of a trigger by its key; without a key, by its position. Returns undefined if the
 * state is missing.
 */
export const standingOf = <S extends Standing>(
  trigger: Trigger,
  index: number,
  standings: readonly S[],
): S | undefined =>
  trigger.key === undefined
    ? standings[index]?.key === undefined || standings[index]?.key === `#${index}`
      ? standings[index]
      : undefined
    : standings.find(({ key }) => key === trigger.key)

/**
 * Finds a trigger in another version of the loop by its key. A trigger without a key has no
 * identity, so it is found only if it is unchanged. Returns -1 if the version does not contain it.
 * @param index position of the trigger in its own version. Of equal triggers, the one at this
 *   position is preferred.
 */
export function positionOf(trigger: Trigger, index: number, triggers: readonly Trigger[]): number {
  if (trigger.key !== undefined) return triggers.findIndex(({ key }) => key === trigger.key)
  const wanted = canonicalJson(trigger)
  const isSame = (other: Trigger | undefined): boolean =>
    other !== undefined && canonicalJson(other) === wanted
  return isSame(triggers[index]) ? index : triggers.findIndex(isSame)
}

/** Returns whether requests to an HTTP trigger need a signature. */
export function isSigned({ settings }: Loop, trigger: Trigger, index: number): boolean {
  const secrets = settings?.['http_triggers']
  if (typeof secrets !== 'object' || secrets === null) return false
  const own = (secrets as Readonly<Record<string, unknown>>)[trigger.key ?? `#${index}`]
  return typeof own === 'object' && own !== null && 'signing_secret' in own
}

/**
 * Returns the shell command that fires an HTTP trigger.
 * @param product name of the product. The name of the signature header contains it or, if it is
 *   `Baton`, the word `Service`.
 */
export function curlOfTrigger(address: string, signed: boolean, product: string): string {
  if (!signed)
    return [
      `curl -X POST ${address}`,
      `-H 'Content-Type: application/json'`,
      `-d '{"example": true}'`,
    ].join(' \\\n  ')
  const brand = product === 'Baton' ? 'Service' : product
  return [
    `BODY='{"example": true}'`,
    // The secret encodes the 32 bytes of the key in base64.
    `KEY=$(printf %s "$SIGNING_SECRET" | base64 -d | od -An -vtx1 | tr -d ' \\n')`,
    `SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$KEY" | sed 's/.* //')`,
    [
      `curl -X POST ${address}`,
      `-H 'Content-Type: application/json'`,
      `-H "X-${brand}-Signature: sha256=$SIGNATURE"`,
      `-d "$BODY"`,
    ].join(' \\\n  '),
  ].join('\n')
}
