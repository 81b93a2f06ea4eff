/**
 * Parsers for the texts of settings. Each parser returns the value, or a fault that describes the
 * accepted texts.
 */
import { accessSync, constants, readFileSync } from 'node:fs'
import { isIPv4, isIPv6 } from 'node:net'
import { parseDuration } from '../../protocol/common.ts'
import { firstTokens } from '../../protocol/subjects.ts'
import { wrongNetwork } from '../outbound/addresses.ts'
import type { Bucket } from '../s3/files.ts'

/** The fault of a setting. `wrong` is the end of a sentence, and describes the accepted texts. */
export interface SettingFault {
  readonly wrong: string
  /** Whether the text may contain a secret, so that a message must not show it. */
  readonly confidential?: boolean
}
export type Parse<T> = (text: string) => T | SettingFault
const wrong = (sentence: string): SettingFault => ({ wrong: sentence })

export const integer =
  (from: number, to: number): Parse<number> =>
  (text) =>
    /^\d+$/.test(text) && Number(text) >= from && Number(text) <= to
      ? Number(text)
      : wrong(`must be a whole number from ${from} to ${to}`)
/**
 * Parses a plain number, whose unit is `unit` milliseconds, or a duration such as `15s`. Returns a
 * number in the same unit.
 */
export const duration =
  (unit: 1 | 1000, from: number, to: number): Parse<number> =>
  (text) => {
    const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * unit : parseDuration(text)
    const amount = ms === undefined ? Number.NaN : ms / unit
    return amount >= from && amount <= to
      ? amount
      : wrong(
          `must be from ${from} to ${to} ${unit === 1 ? 'milliseconds' : 'seconds'}, or a duration such as 15s`,
        )
  }
export const matching =
  (pattern: RegExp, sentence: string): Parse<string> =>
  (text) =>
    pattern.test(text) ? text : wrong(sentence)
/** Parses a URL that matches the pattern. The sentence describes both kinds of faults. */
export const url =
  (pattern: RegExp, sentence: string): Parse<string> =>
  (text) =>
    pattern.test(text) && URL.canParse(text) ? text : wrong(sentence)
export const oneOf =
  <const T extends string>(...values: readonly T[]): Parse<T> =>
  (text) =>
    values.find((value) => value === text) ?? wrong(`must be one of ${values.join(', ')}`)
export const each =
  <T>(parse: Parse<T>): Parse<T[]> =>
  (text) => {
    const items = text
      .split(',')
      .map((item) => item.trim())
      .filter(Boolean)
      .map(parse)
    return (
      (items.find((item) => typeof item === 'object' && item !== null && 'wrong' in item) as
        | SettingFault
        | undefined) ?? (items as T[])
    )
  }
/**
 * Parses a switch. Returns the parameter `on` if the switch is on, and an empty text if it is off.
 * Any other text is returned unchanged if it matches the pattern.
 */
export const parseSwitch =
  (on: string, pattern: RegExp): Parse<string> =>
  (text) =>
    /^(on|true|1|yes)$/i.test(text)
      ? on
      : /^(off|false|0|no)$/i.test(text)
        ? ''
        : pattern.test(text)
          ? text
          : wrong('must be on, off or an id')
export const any = matching(/^[^\0]+$/, 'must not be empty')
/** Parses the address of a NATS server. Its fault does not show a password in the address. */
export const address: Parse<string> = (text) => {
  const [, host] = /^(?:(?:nats|tls):\/\/)?([^\s/]+)$/.exec(text) ?? []
  if (text.includes('@'))
    return {
      wrong: 'must be addresses without credentials; set BATON_NATS_USER and BATON_NATS_PASSWORD',
      confidential: true,
    }
  return host !== undefined && (isIPv6(host) || URL.canParse(`nats://${host}`))
    ? text
    : wrong(
        'must be addresses such as nats://10.0.0.1:4222 or tls://10.0.0.1:4222, comma-separated',
      )
}
/**
 * Parses an origin, or `*`. The result is written as in the header `Origin` of browsers: in lower
 * case, without the default port.
 */
export const origin: Parse<string> = (text) =>
  text === '*'
    ? text
    : /^https?:\/\/[^\s/,?#@]+$/i.test(text) && URL.canParse(text)
      ? new URL(text).origin
      : wrong('must be origins such as https://example.org, or *')
/** Parses the address of a DNS server, with or without a port. */
export const dnsServer: Parse<string> = (text) => {
  const [, v6, v4] = /^(?:\[(.+)\]|([^:]+))(?::\d{1,5})?$/.exec(text) ?? []
  const isAddress = isIPv6(v6 ?? text) || isIPv4(v4 ?? '')
  return isAddress ? text : wrong('must be addresses such as 10.0.0.2 or 10.0.0.2:53')
}
export const network: Parse<string> = (text) => {
  const sentence = wrongNetwork(text)
  return sentence === undefined ? text : wrong(sentence)
}
export const sync: Parse<string> = (text) =>
  text === 'always' || (parseDuration(text) ?? 0) >= 1000
    ? text
    : wrong('must be `always` or a duration of at least 1s, such as 2m')
/** Number of bytes in each unit of size. */
const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}
/** Parses a size of at least 16 MiB. The result is in bytes. */
export const bytes: Parse<number> = (text) => {
  const [, digits = '', unit = ''] = /^(\d{1,16}(?:\.\d+)?)((?:[KMGT]iB)?)$/.exec(text) ?? []
  const size = Math.floor(Number(digits || Number.NaN) * (UNITS[unit] ?? Number.NaN))
  return size >= 16 * 2 ** 20 && Number.isSafeInteger(size)
    ? size
    : wrong('must be a size of at least 16MiB, such as 500MiB or 20GiB')
}
/** Parses a size of at least 16 MiB, or 0. */
export const bytesOrNone: Parse<number> = (text) => (text === '0' ? 0 : bytes(text))
export const replicas: Parse<number> = (text) =>
  [1, 3, 5].includes(Number(text)) ? Number(text) : wrong('must be 1, 3 or 5')

const why = (error: unknown): string => (error instanceof Error ? error.message : String(error))
/** Accepts the path of a file that this process may read. */
export const readable: Parse<string> = (text) => {
  try {
    accessSync(text, constants.R_OK)
    return text
  } catch (error) {
    return wrong(`must be the path of a readable file (${why(error)})`)
  }
}
/** Reads the text of the file at this path. */
export const fileText: Parse<string> = (text) => {
  try {
    return readFileSync(text, 'utf8')
  } catch (error) {
    return wrong(`must be the path of a readable file (${why(error)})`)
  }
}
/**
 * Parses a secret, or `@` and the path of a file that contains the secret. A line break at the end
 * of the file is ignored.
 */
export const secret =
  (parse: Parse<string>): Parse<string> =>
  (text) => {
    if (!text.startsWith('@')) return parse(text)
    const found = fileText(text.slice(1))
    return typeof found === 'string' ? parse(found.replace(/\r?\n$/, '')) : found
  }
/** Parses the prefix of an installation's NATS subjects. */
export const natsPrefix: Parse<string> = (text) =>
  /^[A-Za-z][A-Za-z0-9-]{0,31}$/.test(text) && !firstTokens.has(text)
    ? text
    : wrong(
        'must be 1 to 32 letters, digits and -, beginning with a letter, ' +
          'and not a reserved subject token such as journal',
      )
/** Decodes the percent-encoded characters of a path. Returns undefined if they are not valid. */
function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}
/**
 * Parses the address of a bucket: `s3://<bucket>/<prefix>`, with the query values `region`
 * (`us-east-1` by default) and, for stores other than Amazon S3, `endpoint`. The valid bucket names
 * are defined in the Amazon S3 User Guide under "general purpose bucket naming rules".
 */
export const bucket: Parse<Bucket> = (text) => {
  const given = URL.canParse(text) ? new URL(text) : undefined
  const path = decoded(given?.pathname ?? '')
  const { region, endpoint, ...others } = Object.fromEntries(given?.searchParams ?? [])
  if (
    given?.protocol !== 's3:' ||
    !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(given.host) ||
    given.username !== '' ||
    path === undefined ||
    Object.keys(others).length > 0
  )
    return wrong('must be such as s3://my-bucket/baton?region=eu-central-1, without credentials')
  if (endpoint !== undefined && !(/^https?:\/\/[^\s/]+$/.test(endpoint) && URL.canParse(endpoint)))
    return wrong('has an endpoint that is not such as https://minio.example.org:9000')
  const prefix = path.replace(/^\//, '')
  return {
    bucket: given.host,
    prefix: prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`,
    region: region ?? 'us-east-1',
    ...(endpoint !== undefined && { endpoint }),
  }
}
