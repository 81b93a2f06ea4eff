/**
 * Notifies people outside the service of an interaction by sending one message to the configured
 * URL. The message has an answer link for each person who may use one. If a secret is configured,
 * the message is signed. The receiver forwards the message to the people. A message may arrive more
 * than once, with the same `delivery_id`.
 */
import { createHmac } from 'node:crypto'
import { linkToken } from '../../gateway/pages/answer/token.ts'
import type { Log, World } from '../../gateway/ports.ts'
import { parseTimestamp } from '../../protocol/common.ts'
import { linkableTargets, reviewersOf, roundOf } from '../../protocol/interactions/resolve.ts'
import type { Interaction } from '../../protocol/interactions/schema.ts'
import type { Notice } from '../host/deps.ts'
import type { Channel } from './notifier.ts'

interface HookOptions {
  readonly url: string
  readonly secret?: string
  readonly brand: string
  /** Base URL of answer links. */
  readonly public_url: string
  readonly seal: World['seal']
  readonly now: () => number
  readonly log: Log
}
/** Timeout of one attempt in milliseconds. */
const ATTEMPT_TIMEOUT_MS = 10_000

/**
 * Returns the body of the message; undefined when the interaction no longer has the status to which
 * the notice refers.
 */
function messageOf(
  { id, about, of, record }: Notice,
  { public_url, seal }: HookOptions,
): object | undefined {
  const interaction = record as Interaction
  const { kind, title, description, status, expires_at, run_id, delivery } = interaction
  const wanted = about === 'submitted' ? 'in_review' : 'pending'
  if (status !== wanted) return undefined
  const expires = expires_at === undefined ? undefined : parseTimestamp(expires_at)
  const claim = {
    project: of.project,
    interaction: of.id,
    round: roundOf(interaction),
    ...(expires !== undefined && { expires }),
  }
  const able = linkableTargets(interaction)
  const recipients =
    about === 'submitted'
      ? reviewersOf(interaction).map((user_id) => ({ user_id }))
      : interaction.target_user_ids.map((user_id) => ({
          user_id,
          ...(able.includes(user_id) && {
            answer_url: `${public_url}/answer/${linkToken({ seal }, { ...claim, target: user_id })}`,
          }),
        }))
  return {
    type: `interaction.${about}`,
    delivery_id: id,
    project_id: of.project,
    recipients,
    interaction: {
      id: of.id,
      kind,
      title,
      status,
      ...(description !== undefined && { description }),
      ...(expires_at !== undefined && { expires_at }),
      ...(run_id !== undefined && { run_id }),
      ...(delivery && { delivery }),
    },
  }
}

/** Creates the webhook channel. */
export function createWebhookNotifier(options: HookOptions): Channel {
  const { url, secret, brand, now, log } = options
  const send = async (notice: Notice, message: object): Promise<boolean> => {
    const body = JSON.stringify(message)
    const time = String(Math.floor(now() / 1000))
    const signed = secret !== undefined && {
      [`X-${brand}-Signature`]:
        'sha256=' +
        createHmac('sha256', secret).update(`v1.${notice.id}.${time}.${body}`).digest('hex'),
      [`X-${brand}-Signature-Version`]: 'v1',
    }
    try {
      const answer = await fetch(url, {
        method: 'POST',
        body,
        redirect: 'error',
        signal: AbortSignal.timeout(ATTEMPT_TIMEOUT_MS),
        headers: {
          'content-type': 'application/json',
          'idempotency-key': notice.id,
          [`X-${brand}-Delivery-Id`]: notice.id,
          [`X-${brand}-Timestamp`]: time,
          ...signed,
        },
      })
      await answer.body?.cancel()
      if (answer.ok) return true
      const again = answer.status >= 500 || answer.status === 408 || answer.status === 429
      if (!again)
        log.warn(
          { event: 'notification_webhook_rejected', status: answer.status, delivery: notice.id },
          'notification webhook rejected',
        )
      return !again
    } catch (error) {
      log.debug(
        { event: 'notification_webhook_failed', err: error, delivery: notice.id },
        'notification webhook failed',
      )
      return false
    }
  }
  return async (notice) => {
    const message = messageOf(notice, options)
    return message ? [{ to: url, send: () => send(notice, message) }] : []
  }
}
