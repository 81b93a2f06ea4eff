/**
 * Converts an e-mail message into the payload of `email.received`. The listener limits the size of
 * the raw message. This module limits the parts of the event. HTML is truncated at its limit, but
 * otherwise left unchanged and never rendered.
 */
import { type AddressObject, type ParsedMail, simpleParser } from 'mailparser'
import type { JsonObject } from '../../protocol/common.ts'
import { cutText } from '../../protocol/rules/cut-text.ts'
import type { Authenticity } from './authenticity.ts'
import { plainTextOf } from './plain-text.ts'

/**
 * Limits on the parts of a message in an event: maximum lengths in characters for `text`, `html`
 * and `header`, and maximum numbers of entries for the others.
 */
const MAX = {
  text: 100_000,
  html: 60_000,
  header: 998,
  addresses: 100,
  references: 100,
  files: 100,
}

/** Maximum length of the header of a part in bytes. */
const MAX_PART_HEADER_BYTES = 262_144

/** Facts about a message that its parsed form does not contain. */
export interface Received {
  /** Unix milliseconds. */
  readonly at: number
  readonly authenticity: Authenticity
  /** The address of `MAIL FROM`; empty for a bounce. */
  readonly sender: string
}

/**
 * Parses a message. The parser's own conversion of HTML to text is disabled, because it recurses
 * into nested elements, and deeply nested HTML could overflow the stack.
 */
export const parseMessage = (raw: Buffer): Promise<ParsedMail> =>
  simpleParser(raw, {
    skipHtmlToText: true,
    skipTextToHtml: true,
    skipImageLinks: true,
    skipTextLinks: true,
    checksumAlgo: 'sha256',
    maxHeadSize: MAX_PART_HEADER_BYTES,
  })

/**
 * Returns the id of a message: its `Message-ID` (RFC 5322, 3.6.4) without the angle brackets.
 * Returns undefined when the message has none.
 */
export const messageIdOf = ({ messageId }: ParsedMail): string | undefined => {
  const id = messageId?.trim().replace(/^<|>$/g, '')
  return id ? header(id) : undefined
}

/** Returns the address of the author, as the event shows it; empty if the message has none. */
export const authorOf = ({ from }: ParsedMail): string => addressesOf(from)[0] ?? ''

/**
 * Returns the payload of `email.received` for a message, without `agent_id`.
 * @param message_id identifies the message. The caller derives it from the content if the message
 *   has no `Message-ID`.
 */
export function eventOf(
  mail: ParsedMail,
  message_id: string,
  { at, authenticity, sender }: Received,
): JsonObject {
  const html = typeof mail.html === 'string' ? mail.html : undefined
  const plain = mail.text ?? ''
  const text = plain.trim() === '' && html !== undefined ? plainTextOf(html, MAX.text) : plain
  const references = [mail.references ?? []].flat().slice(0, MAX.references)
  const cut = text.length > MAX.text || (html?.length ?? 0) > MAX.html
  return {
    message_id,
    from: authorOf(mail),
    to: addressesOf(mail.to),
    cc: addressesOf(mail.cc),
    subject: header(mail.subject ?? ''),
    text: cutText(text, MAX.text),
    ...(html !== undefined && { html: cutText(html, MAX.html) }),
    ...(cut && { truncated: true }),
    ...(mail.inReplyTo !== undefined && { in_reply_to: header(mail.inReplyTo) }),
    references: references.map(header),
    attachments: mail.attachments.slice(0, MAX.files).map((file) => ({
      name: header(file.filename ?? 'attachment'),
      content_type: header(file.contentType),
      size_bytes: file.size,
      sha256: file.checksum,
    })),
    authentication: { ...authenticity },
    automatic: isAutomatic(mail, sender),
    received_at: new Date(at).toISOString(),
  }
}

/** Values of `Precedence` that mail programs set when they answer or send in bulk. */
const AUTOMATIC_PRECEDENCE = new Set(['auto_reply', 'bulk', 'junk'])

/**
 * Whether a program sent a message, so that an answer could cause another automatic answer: it is
 * marked by `Auto-Submitted` (RFC 3834, 5) or `Precedence`, or it has no return path, as all bounces
 * and most vacation notices do.
 */
function isAutomatic({ headers }: ParsedMail, sender: string): boolean {
  // The first word of a field. Comments and parameters can follow it.
  const words = (name: string): string[] =>
    [headers.get(name) ?? []]
      .flat()
      .map((value) => /^[^\s;(]*/.exec(String(value).trim())?.[0].toLowerCase() ?? '')
  return (
    sender === '' ||
    words('auto-submitted').some((word) => word !== '' && word !== 'no') ||
    words('precedence').some((word) => AUTOMATIC_PRECEDENCE.has(word))
  )
}

const header = (text: string): string => cutText(text, MAX.header)
const addressesOf = (given: AddressObject | readonly AddressObject[] | undefined): string[] =>
  [given ?? []]
    .flat()
    .flatMap(({ value }) => value)
    .flatMap(({ address }) => (address ? [header(address.toLowerCase())] : []))
    .slice(0, MAX.addresses)
