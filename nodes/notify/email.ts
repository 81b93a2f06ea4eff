/**
 * Notification by e-mail. E-mail is sent only in two cases. In the first, the delivery of an
 * interaction contains addresses. In the second, the interaction has no delivery and its project
 * has the setting `email_notifications`. E-mail is then sent to the addresses of the targets. An
 * answer link is sent only to the address that an administrator stored for its target. Otherwise
 * the creator of an interaction could receive another person's link.
 */
import { createHash } from 'node:crypto'
import { linkToken } from '../../gateway/pages/answer/token.ts'
import type { Log, World } from '../../gateway/ports.ts'
import type { ReachablePerson } from '../../protocol/access/directory.ts'
import { parseTimestamp } from '../../protocol/common.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { linkableTargets, reviewersOf, roundOf } from '../../protocol/interactions/resolve.ts'
import type { Interaction } from '../../protocol/interactions/schema.ts'
import type { Notice } from '../host/deps.ts'
import { emailOf, type Recipient } from './email-message.ts'
import type { Channel } from './notifier.ts'

interface EmailOptions {
  /** URL of the mail server, with its user and password. */
  readonly url: string
  readonly from: string
  /** Base URL of links. If absent, e-mails have no links. */
  readonly public_url?: string
  readonly seal: World['seal']
  /** Returns the active people who are among the targets and have an e-mail address. */
  reach(project: string, targets: readonly string[]): Promise<readonly ReachablePerson[] | Refusal>
  /** Whether a project sends e-mail for interactions without a delivery. */
  wanted(project: string): Promise<boolean | Refusal>
  readonly log: Log
}
/**
 * Timeout in milliseconds for connecting to the mail server, for its greeting, and for inactivity
 * after that.
 */
const SMTP_TIMEOUT_MS = 10_000
/** Maximum number of connections to the mail server. */
const MAX_CONNECTIONS = 4
/** Maximum number of e-mails per notice, because a role may have any number of members. */
const MAX_MESSAGES = 200

/**
 * Returns the recipients of a notice: the addresses in the interaction's delivery or, without a
 * delivery, all targets with an address. An e-mail channel without addresses stands for all
 * targets too. The addresses in a delivery belong to people who answer, so reviewers are notified
 * at their stored addresses.
 */
function recipientsOf(
  { delivery }: Interaction,
  about: Notice['about'],
  reached: readonly ReachablePerson[],
): Recipient[] {
  const everybody = reached.map(({ email, name, target, id }) => ({
    email,
    name,
    ...(target === id && { target }),
  }))
  const channels = delivery?.channels.filter(({ kind }) => kind === 'email')
  if (!channels || (about === 'submitted' && channels.length > 0)) return everybody
  // Addresses that differ only in case belong to one mailbox.
  const named = new Map<string, string>()
  const own = everybody.map(({ email }) => email)
  for (const email of channels.flatMap(({ email }) => email?.to ?? own))
    if (!named.has(email.toLowerCase())) named.set(email.toLowerCase(), email)
  return [...named].map(
    ([key, email]) => everybody.find((one) => one.email.toLowerCase() === key) ?? { email },
  )
}

/** Opens the e-mail channel. */
export async function createEmailNotifier({
  url,
  from,
  public_url,
  seal,
  reach,
  wanted,
  log,
}: EmailOptions): Promise<{ readonly channel: Channel; close(): void }> {
  // The library is imported here, so that nodes that send no e-mail do not load it.
  const { createTransport } = await import('nodemailer')
  const mail = createTransport({
    url,
    pool: true,
    maxConnections: MAX_CONNECTIONS,
    connectionTimeout: SMTP_TIMEOUT_MS,
    greetingTimeout: SMTP_TIMEOUT_MS,
    socketTimeout: SMTP_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const domain = /@([^\s@>]+)/.exec(from)?.[1] ?? 'localhost'

  function linkOf(
    { of }: Notice,
    interaction: Interaction,
    target: string | undefined,
  ): string | undefined {
    if (
      public_url === undefined ||
      target === undefined ||
      !linkableTargets(interaction).includes(target)
    )
      return undefined
    const expires =
      interaction.expires_at === undefined ? undefined : parseTimestamp(interaction.expires_at)
    const token = linkToken(
      { seal },
      {
        project: of.project,
        interaction: of.id,
        target,
        round: roundOf(interaction),
        ...(expires !== undefined && { expires }),
      },
    )
    return `${public_url}/answer/${token}`
  }
  async function send(
    notice: Notice,
    interaction: Interaction,
    recipient: Recipient,
  ): Promise<boolean> {
    const { id, about } = notice
    const { email, target } = recipient
    const name = createHash('sha256').update(`${id}\n${email}`).digest('hex').slice(0, 40)
    try {
      await mail.sendMail({
        ...emailOf(
          about,
          interaction,
          recipient,
          about === 'submitted' ? undefined : linkOf(notice, interaction, target),
        ),
        from,
        to: { name: recipient.name ?? '', address: email },
        // A repeated e-mail has the same `Message-ID`.
        messageId: `<${name}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
      })
      return true
    } catch (error) {
      // The error's text may contain data that was sent to the server, so only its codes are
      // logged.
      const { code, responseCode: status = 0 } = error as { code?: string; responseCode?: number }
      const final = status >= 500 && code !== 'EAUTH'
      log.warn(
        {
          event: final ? 'smtp_message_rejected' : 'smtp_delivery_failed',
          code,
          status,
          delivery: id,
        },
        final ? 'SMTP server rejected message' : 'SMTP delivery failed',
      )
      return final
    }
  }
  const channel: Channel = async (notice) => {
    const interaction = notice.record as Interaction
    if (interaction.status !== (notice.about === 'submitted' ? 'in_review' : 'pending')) return []
    const sends = interaction.delivery !== undefined || (await wanted(notice.of.project))
    if (typeof sends !== 'boolean') return undefined
    if (!sends) return []
    const reached = await reach(
      notice.of.project,
      notice.about === 'submitted' ? reviewersOf(interaction) : interaction.target_user_ids,
    )
    if (isRefusal(reached)) return undefined
    return recipientsOf(interaction, notice.about, reached)
      .slice(0, MAX_MESSAGES)
      .map((recipient) => ({
        to: recipient.email,
        send: () => send(notice, interaction, recipient),
      }))
  }
  return { channel, close: () => mail.close() }
}
