/**
 * Notification by e-mail. It is sent only where somebody asked for it: an interaction names addresses in its delivery, or it
 * has no delivery and its project has the setting `email_notifications`, which sends it to the addresses of its targets. An answer link is put only into a letter to the address that an administrator keeps for that very
 * target: whoever asks a question cannot have the answer of somebody else sent to an address of their own.
 */
import { createHash } from 'node:crypto'
import type { Log, World } from '../../gateway/ports.ts'
import { linkToken } from '../../gateway/pages/answer/token.ts'
import { parseTimestamp } from '../../protocol/common.ts'
import type { Reached } from '../../protocol/access/directory.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { linkable, reviewersOf, roundOf } from '../../protocol/interactions/resolve.ts'
import type { Interaction } from '../../protocol/interactions/schema.ts'
import type { Notice } from '../host/deps.ts'
import { emailOf, type Recipient } from './email-message.ts'
import type { Channel } from './notifier.ts'

interface LetterOptions {
  /** Of the mail server, with its user and password. */
  readonly url: string
  readonly from: string
  /** What links begin with; absent: letters have none. */
  readonly public_url?: string
  readonly seal: World['seal']
  /** The active people with an address among targets of a project. */
  reach(project: string, targets: readonly string[]): Promise<readonly Reached[] | Refusal>
  /** Whether a project wants e-mail for interactions without a delivery. */
  wanted(project: string): Promise<boolean | Refusal>
  readonly log: Log
}
/** Milliseconds the mail server may be silent. */
const SMTP_TIMEOUT_MS = 10_000
const CONNECTIONS = 4
/** E-mails of one notice at most: a role may have any number of members. */
const MAX_MESSAGES = 200

/** Who gets a letter: by the addresses that the interaction names, else everybody who is asked. Those addresses are of people who answer, not of reviewers. */
function recipientsOf(
  { delivery }: Interaction,
  about: Notice['about'],
  reached: readonly Reached[],
): Recipient[] {
  const everybody = reached.map(({ email, name, target, id }) => ({
    email,
    name,
    ...(target === id && { target }),
  }))
  if (!delivery || (about === 'submitted' && delivery.channels.some(({ email }) => email)))
    return everybody
  const named = new Set(delivery.channels.flatMap(({ email }) => email?.to ?? []))
  return [...named].map(
    (email) =>
      everybody.find((one) => one.email.toLowerCase() === email.toLowerCase()) ?? { email },
  )
}

/** Open the mail. */
export async function createEmailNotifier({
  url,
  from,
  public_url,
  seal,
  reach,
  wanted,
  log,
}: LetterOptions): Promise<{ readonly channel: Channel; close(): void }> {
  // Nodes that send no letters do not wait for it.
  const { createTransport } = await import('nodemailer')
  const mail = createTransport({
    url,
    pool: true,
    maxConnections: CONNECTIONS,
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
    if (public_url === undefined || target === undefined || !linkable(interaction).includes(target))
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
        // The same letter has the same name however often it is sent.
        messageId: `<${name}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
      })
      return true
    } catch (error) {
      // Its text may repeat what was said to the server: only what it is called is written down.
      const { code, responseCode: status = 0 } = error as { code?: string; responseCode?: number }
      const final = status >= 500 && code !== 'EAUTH'
      log.warn(
        { code, status, delivery: id },
        final ? 'a letter was refused' : 'a letter did not get through',
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
