/**
 * The formats of JSON Schema that are enforced. All other formats are only annotations, as the
 * standard allows. `regex` is not enforced, because the JavaScript engine must not compile patterns
 * from users.
 *
 * Invariant: each test takes time linear in the length of the text. The patterns run on the
 * automaton, or are JavaScript patterns in which no repetition is ambiguous.
 */
import { test } from '../regex/automaton.ts'
import { compilePattern, ECMASCRIPT } from '../regex/pattern.ts'

/** Returns a test for strings that match a pattern and have at most `longest` UTF-16 units. */
function shape(source: string, longest: number): (text: string) => boolean {
  const pattern = compilePattern(source, ECMASCRIPT)
  return (text) => text.length <= longest && test(pattern, text, { left: Number.POSITIVE_INFINITY })
}
/** Maximum length of a URI or JSON pointer in UTF-16 units. */
const MAX_URI_LENGTH = 8192

const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
/** Number of days of each month in a common year. */
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const
function isDate(text: string): boolean {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text) ?? []
  if (day === undefined) return false
  const most = Number(month) === 2 && isLeap(Number(year)) ? 29 : DAYS[Number(month) - 1]
  return most !== undefined && Number(day) >= 1 && Number(day) <= most
}
function isTime(text: string): boolean {
  const found =
    text.length <= 64 && /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[zZ]|([+-])(\d\d):(\d\d))$/.exec(text)
  if (!found) return false
  const [, hour, minute, second, sign, hours = 0, minutes = 0] = found
  if (Number(hour) > 23 || Number(minute) > 59 || Number(hours) > 23 || Number(minutes) > 59)
    return false
  if (Number(second) < 60) return true
  // A leap second can only be the last second of a day in UTC.
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
  const utc = (Number(hour) * 60 + Number(minute) - offset + 1440) % 1440
  return Number(second) === 60 && utc === 1439
}
const isDateTime = (text: string): boolean =>
  /[tT ]/.test(text.charAt(10)) && isDate(text.slice(0, 10)) && isTime(text.slice(11))

const isDuration = shape(
  '^P([0-9]+W|([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|' +
    '[0-9]+D)(T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))?|' +
    'T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))$',
  128,
)
const isLabel = shape('^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$', 63)
const isHostname = (text: string): boolean =>
  text.length <= 253 && text.split('.').every((label) => isLabel(label))
const isIpv4 = (text: string): boolean =>
  text.length <= 15 &&
  text.split('.').length === 4 &&
  text.split('.').every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)
function isIpv6(text: string): boolean {
  if (text.length > 45) return false
  const halves = text.split('::')
  if (halves.length > 2) return false
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')))
  const last = groups.at(-1)
  const embedded = last !== undefined && isIpv4(last) && text.endsWith(last)
  const hexadecimal = embedded ? groups.slice(0, -1) : groups
  const count = hexadecimal.length + (embedded ? 2 : 0)
  return (
    hexadecimal.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group)) &&
    (halves.length === 2 ? count < 8 : count === 8)
  )
}

const isLocalPart = shape(
  '^("([ !#-\\[\\]-~]|\\\\[ -~])*"|[a-zA-Z0-9!#$%&\'*+/=?^_`{|}~-]+(\\.[a-zA-Z0-9!#$%&\'*+/=?^_`{|}~-]+)*)$',
  64,
)
function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@')
  if (at < 1 || text.length > 320 || !isLocalPart(text.slice(0, at))) return false
  const host = text.slice(at + 1)
  if (!host.startsWith('[')) return isHostname(host)
  const address = host.endsWith(']') ? host.slice(1, -1) : ''
  return /^ipv6:/i.test(address) ? isIpv6(address.slice(5)) : isIpv4(address)
}

const isPlain = shape('^([!#$&-;=?-Z_a-z~\\[\\]]|%[0-9a-fA-F]{2})*$', MAX_URI_LENGTH)
/**
 * Checks characters and percent-encoding as defined in RFC 3986. Brackets are allowed only around
 * a host that is an IPv6 address, and at most one `#` is allowed.
 */
function isUriReference(text: string): boolean {
  const [before = '', ...fragments] = text.split('#', 3)
  if (fragments.length > 1 || !isPlain(text.replace('#', ''))) return false
  const authority = /^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?\/\/([^/?]*)/.exec(before)?.[1] ?? ''
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  const user = authority.slice(0, authority.length - host.length)
  const outside = before.replace(authority, () => user) + (fragments[0] ?? '')
  if (/[[\]]/.test(outside)) return false
  const address = /^\[([^\]]*)\](:\d*)?$/.exec(host)?.[1]
  return address === undefined ? /^[^[\]:]*(:\d*)?$/.test(host) : isIpv6(address)
}
const isUri = (text: string): boolean =>
  /^[a-zA-Z][a-zA-Z0-9+.-]*:/.test(text) && isUriReference(text)

/** The tests of the enforced formats, by format name. */
export const formats: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ['date', isDate],
  ['time', isTime],
  ['date-time', isDateTime],
  ['duration', isDuration],
  ['email', isEmail],
  ['hostname', isHostname],
  ['ipv4', isIpv4],
  ['ipv6', isIpv6],
  ['uri', isUri],
  ['url', isUri],
  ['uri-reference', isUriReference],
  ['uuid', shape('^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$', 36)],
  ['json-pointer', shape('^(/([^~/]|~0|~1)*)*$', MAX_URI_LENGTH)],
  ['relative-json-pointer', shape('^(0|[1-9][0-9]*)(#|(/([^~/]|~0|~1)*)*)$', MAX_URI_LENGTH)],
])
