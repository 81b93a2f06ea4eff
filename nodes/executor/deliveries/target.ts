/**
 * Finds where an attempt of a delivery is sent, and the key that signs it. Both are looked up for
 * each attempt. Without a key there is no target, so nothing is sent unsigned.
 */
import type { Directory } from '../../../gateway/directory.ts'
import type { World } from '../../../gateway/ports.ts'
import { mayReadEvent } from '../../../gateway/sessions/reader.ts'
import { SIGNING_KEY } from '../../../protocol/access/secret-rows.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { restrictionOf } from '../../../protocol/events/sources.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { secretRef } from '../../../protocol/naming.ts'
import type { OwnerQuery } from '../../../protocol/queries/owners.ts'
import type { DeliveryOpening } from '../../../protocol/webhooks/delivery.ts'
import { restoreUrl } from '../open-url.ts'

export interface TargetParts {
  readonly world: Pick<World, 'ask' | 'view' | 'unlock' | 'now' | 'settings'>
  readonly directory: Directory
}
export interface Target {
  readonly url: string
  readonly schemes: readonly ('https:' | 'http:')[]
  readonly key: Uint8Array
  readonly secret_ref: string
  readonly secret_version: number
}
/** The reason why a delivery has no target. `passes` is true if a later attempt may find one. */
export interface NoTarget {
  readonly error: string
  readonly passes: boolean
}
type DestinationOf<K extends DeliveryOpening['to']['kind']> = Extract<
  DeliveryOpening['to'],
  { readonly kind: K }
>

/** Size of a signing key in bytes. */
const KEY_BYTES = 32

const final = (error: string): NoTarget => ({ error, passes: false })
const temporary = (error: string): NoTarget => ({ error, passes: true })
const unreadable = (what: string): NoTarget => temporary(`The ${what} could not be read.`)
const URL_SEALED_ELSEWHERE = temporary(
  'The query of the URL cannot be decrypted; set the URL with its values again.',
)

/** Returns the target of a delivery, or the reason why it has none. */
export async function findTarget(
  parts: TargetParts,
  project: string,
  opening: DeliveryOpening,
): Promise<Target | NoTarget> {
  const organization = await parts.directory.organization()
  if (isRefusal(organization)) return unreadable('organization')
  if (getOwn(organization.projects, project)?.deleted) return final('The project was deleted.')
  const { to } = opening
  return to.kind === 'webhook'
    ? webhookTarget(parts, project, to, opening)
    : callbackTarget(parts, project, to)
}

async function webhookTarget(
  parts: TargetParts,
  project: string,
  to: DestinationOf<'webhook'>,
  opening: DeliveryOpening,
): Promise<Target | NoTarget> {
  const { world } = parts
  const found = await askProject(world, project, 'webhook', { webhook_id: to.webhook_id })
  if (isRefusal(found)) return unreadable('webhook')
  if (!found) return final('The webhook was deleted.')
  const { webhook, secret } = found
  if (!opening.once && !webhook.enabled) return final('The webhook is disabled.')
  const address = to.url ?? webhook.url
  if (address === '') return final('The webhook has no URL.')
  const withheld = await reasonToWithhold(parts, project, opening, webhook.updated_by)
  if (withheld) return withheld
  const url = restoreUrl(world, project, address, to.url === undefined ? found : to)
  if (url === undefined) return URL_SEALED_ELSEWHERE
  const key = world.unlock(secret.sealed, project)
  if (!key) return temporary('The secret of the webhook cannot be decrypted.')
  return {
    url,
    schemes: ['https:'],
    key,
    secret_ref: secretRef(world.settings.brand, 'webhook', webhook.id),
    secret_version: secret.version,
  }
}

/**
 * Returns why the webhook may not receive an event of a private session or a private artifact;
 * undefined when it may.
 * @param editor the principal that last changed the webhook.
 */
async function reasonToWithhold(
  parts: TargetParts,
  project: string,
  opening: DeliveryOpening,
  editor: string | undefined,
): Promise<NoTarget | undefined> {
  const restriction = restrictionOf(opening)
  if (!restriction) return undefined
  const allowed = editor !== undefined && (await mayReadEvent(parts, project, restriction, editor))
  if (isRefusal(allowed)) return unreadable('private session')
  const what = restriction.private_owner === undefined ? 'session' : 'artifact'
  return allowed ? undefined : final(`The last editor of the webhook may not read the ${what}.`)
}

async function callbackTarget(
  { world }: TargetParts,
  project: string,
  to: DestinationOf<'callback'>,
): Promise<Target | NoTarget> {
  const secret = await askProject(world, project, 'secret', { ref: to.secret_ref })
  if (isRefusal(secret)) return unreadable('secret')
  const text = secret && world.unlock(secret.sealed, project)
  const entries =
    text && (JSON.parse(Buffer.from(text).toString('utf8')) as Readonly<Record<string, string>>)
  const key = Buffer.from((entries && getOwn(entries, SIGNING_KEY)) ?? '', 'base64')
  if (!secret || key.length !== KEY_BYTES)
    return temporary(
      `The secret ${to.secret_ref} is missing, or its ${SIGNING_KEY} is not 32 bytes long.`,
    )
  const url = restoreUrl(world, project, to.callback_url, to)
  if (url === undefined) return URL_SEALED_ELSEWHERE
  return {
    url,
    schemes: ['https:', 'http:'],
    key,
    secret_ref: to.secret_ref,
    secret_version: secret.version,
  }
}

/** Asks a project's actor. Returns undefined if it has no such record. */
async function askProject<N extends 'webhook' | 'secret'>(
  world: TargetParts['world'],
  project: string,
  name: N,
  input: OwnerQuery<'project', N>['input'],
): Promise<OwnerQuery<'project', N>['reply'] | undefined | Refusal> {
  const answer = await world.ask({ project, kind: 'project', id: project }, name, input)
  return answer ?? undefined
}
