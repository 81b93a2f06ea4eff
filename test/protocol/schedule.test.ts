/**
 * Schedules compared with an independent calculation: two years minute by minute, in zones whose
 * clocks change by an hour and by half an hour.
 */
import fc from 'fast-check'
import t from 'tap'
import {
  latestFire,
  MIN_INTERVAL_MS,
  nextFire,
  scheduleFault,
} from '../../protocol/rules/schedule.ts'

const FROM = Date.UTC(2026, 0, 1)
const TO = Date.UTC(2028, 0, 1)
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const SLOT_MS = 30 * MINUTE_MS
/** The number of half-hour slots in a day. */
const DAY_SLOTS = 48

/**
 * Returns the UTC offsets of a zone in minutes, one for each half hour. Offsets change only at half
 * hours, and at most once a day. Therefore a day is computed slot by slot only if the next day
 * begins with another offset.
 */
function offsets(zone: string): Int16Array {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone: zone,
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    hourCycle: 'h23',
  })
  const offsetIn = (slot: number): number => {
    const at = FROM + slot * SLOT_MS
    const part = Object.fromEntries(
      format.formatToParts(at).map(({ type, value }) => [type, Number(value)]),
    )
    const [year = 0, month = 1] = [part['year'], part['month']]
    const wall = Date.UTC(year, month - 1, part['day'], part['hour'], part['minute'])
    return (wall - at) / MINUTE_MS
  }
  const all = new Int16Array((TO - FROM) / SLOT_MS + 2 * DAY_SLOTS)
  for (let day = 0; day < all.length; day += DAY_SLOTS) {
    const [first, next] = [offsetIn(day), offsetIn(day + DAY_SLOTS)]
    for (let slot = day; slot < day + DAY_SLOTS; slot++)
      all[slot] = first === next ? first : offsetIn(slot)
  }
  return all
}
interface Rule {
  readonly cron: string
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  readonly day?: (date: Date) => boolean
}
const every = (step: number, below: number) =>
  Array.from({ length: below / step }, (_, i) => i * step)
const rules: readonly Rule[] = [
  { cron: '30 2 * * *', minutes: [30], hours: [2] },
  { cron: '15 1 * * *', minutes: [15], hours: [1] },
  { cron: '0 2 * * 0', minutes: [0], hours: [2], day: (date) => date.getUTCDay() === 0 },
  { cron: '0 9 * * 1-5', minutes: [0], hours: [9], day: (date) => date.getUTCDay() % 6 !== 0 },
  { cron: '0,30 1-3 * * *', minutes: [0, 30], hours: [1, 2, 3] },
  {
    cron: '45 */3 1,15 * *',
    minutes: [45],
    hours: every(3, 24),
    day: (date) => date.getUTCDate() === 1 || date.getUTCDate() === 15,
  },
]

/** Rules for a zone whose clocks skip the last hour of a date. */
const lateRules: readonly Rule[] = [
  { cron: '30 23 * * *', minutes: [30], hours: [23] },
  { cron: '0 23 * * 6', minutes: [0], hours: [23], day: (date) => date.getUTCDay() === 6 },
  { cron: '@midnight', minutes: [0], hours: [0] },
]

/**
 * Returns the times at which a rule fires: every minute whose wall clock matches. A rule with a
 * single time of day fires once a day. On a day that lacks this time, it fires after the gap.
 */
function expected({ minutes, hours, day = () => true }: Rule, zone: Int16Array): number[] {
  const once = minutes.length === 1 && hours.length === 1
  const wanted = (hours[0] ?? 0) * 60 + (minutes[0] ?? 0)
  const fires: number[] = []
  let done = -1
  let today = -1
  for (let at = FROM + MINUTE_MS; at < TO; at += MINUTE_MS) {
    const wall = at + (zone[Math.floor((at - FROM) / SLOT_MS)] ?? 0) * MINUTE_MS
    const date = Math.floor(wall / DAY_MS)
    const minute = Math.floor(wall / MINUTE_MS) % 1440
    if (once) {
      // A clock change may skip the end of a date. The rule then fires on the next date.
      const yesterday = today
      today = date
      const isLate = yesterday >= 0 && yesterday !== date && done !== yesterday
      if (isLate && fires.length > 0 && day(new Date(yesterday * DAY_MS))) fires.push(at)
      // If the rule's time of day has already passed at `FROM`, the rule does not fire on the first
      // day.
      if (minute < wanted || date === done || (fires.length === 0 && minute > wanted + 120))
        continue
      done = date
      if (day(new Date(wall))) fires.push(at)
    } else if (
      minutes.includes(minute % 60) &&
      hours.includes(Math.floor(minute / 60)) &&
      day(new Date(wall))
    )
      fires.push(at)
  }
  return fires
}

for (const [zone, tested] of [
  ['America/New_York', rules],
  ['Europe/Berlin', rules],
  ['Australia/Lord_Howe', rules],
  ['America/Nuuk', lateRules],
] as const) {
  const shifts = offsets(zone)
  for (const rule of tested)
    t.test(`${rule.cron} in ${zone}`, async (t) => {
      const fires = expected(rule, shifts)
      const found: number[] = []
      for (let at: number | undefined = (fires[0] ?? 0) - 1; ; ) {
        at = nextFire({ cron: rule.cron, timezone: zone }, at, 0)
        if (at === undefined || at >= TO) break
        found.push(at)
      }
      const index = fires.findIndex((at, i) => at !== found[i])
      t.equal(
        index < 0
          ? ''
          : `${new Date(fires[index] ?? 0).toISOString()} but ${new Date(found[index] ?? 0).toISOString()}`,
        '',
      )
      t.equal(found.length, fires.length)
    })
}

t.test('a time that a clock change skips counts as the first moment after the gap', async (t) => {
  const next = (cron: string, timezone: string, after: string): string =>
    new Date(nextFire({ cron, timezone }, Date.parse(after), 0) ?? 0).toISOString()
  const nuuk = (cron: string) => next(cron, 'America/Nuuk', '2027-03-27T12:00:00Z')
  for (const cron of ['30 23 * * *', '30 23 * * 6', '30 23 27 3 *'])
    t.equal(nuuk(cron), '2027-03-28T01:00:00.000Z', cron)
  t.equal(nuuk('30 23 28 3 *'), '2027-03-29T00:30:00.000Z', 'the next date is not affected')
  t.equal(nuuk('@daily'), '2027-03-28T01:00:00.000Z')
  // Samoa had no 2011-12-30.
  const apia = (cron: string, after: string) => next(cron, 'Pacific/Apia', after)
  t.equal(apia('0 12 30 12 *', '2011-12-01T00:00:00Z'), '2011-12-30T10:00:00.000Z')
  t.equal(apia('0 12 * * *', '2011-12-30T00:00:00Z'), '2011-12-30T10:00:00.000Z')
  t.equal(apia('0 12 * * *', '2011-12-30T10:00:00Z'), '2011-12-30T22:00:00.000Z')
})

t.test('the latest fire up to a time equals that of a full search', async () => {
  const schedule = fc.constantFrom(
    { cron: '30 2 * * *', timezone: 'Europe/Berlin' },
    { cron: '* 9 * * 1' },
    { cron: '@hourly' },
    { interval: '10s' },
    { interval: '7m' },
  )
  void fc.assert(
    fc.property(
      schedule,
      fc.integer({ min: 0, max: 40 * 86_400_000 }),
      fc.integer({ min: 0, max: 3 * 86_400_000 }),
      (one, from, length) => {
        const known = nextFire(one, FROM + from, FROM)
        if (known === undefined) throw new Error('it never fires')
        const now = known + length
        let last = known
        const step = 'interval' in one ? Math.max(0, Math.floor((now - known) / 10_000) - 5) : 0
        if (one.interval === '10s') last = known + step * 10_000
        for (
          let at = nextFire(one, last, FROM);
          at !== undefined && at <= now;
          at = nextFire(one, at, FROM)
        )
          last = at
        if (latestFire(one, known, now, FROM) !== last)
          throw new Error(
            `${new Date(latestFire(one, known, now, FROM)).toISOString()} instead of ${new Date(last).toISOString()}`,
          )
      },
    ),
    { numRuns: 40 },
  )
})

t.test(
  'intervals count from their start, and an invalid schedule reports the reason',
  async (t) => {
    t.equal(nextFire({ interval: '15m' }, FROM, FROM), FROM + 15 * MINUTE_MS)
    t.equal(nextFire({ interval: '15m' }, FROM + 15 * MINUTE_MS, FROM), FROM + 30 * MINUTE_MS)
    t.equal(nextFire({ interval: '15m' }, FROM + 100 * MINUTE_MS, FROM), FROM + 105 * MINUTE_MS)
    t.equal(MIN_INTERVAL_MS, 10_000)
    for (const fine of [
      { interval: '10s' },
      { cron: '@weekly' },
      { cron: '0 0 29 2 *' },
      { cron: '0 9 * * MON-FRI', timezone: 'Asia/Kolkata' },
    ])
      t.equal(scheduleFault(fine), undefined)
    for (const [bad, field] of [
      [{}, 'cron'],
      [{ cron: '@daily', interval: '1m' }, 'cron'],
      [{ interval: '9s' }, 'interval'],
      [{ interval: 'soon' }, 'interval'],
      [{ interval: '1m', timezone: 'UTC' }, 'timezone'],
      [{ cron: '* * * * * *' }, 'cron'],
      [{ cron: '@reboot' }, 'cron'],
      [{ cron: '0 0 31 4 *' }, 'cron'],
      [{ cron: '@daily', timezone: '../etc' }, 'timezone'],
    ] as const)
      t.equal(scheduleFault(bad)?.field, field, JSON.stringify(bad))
    for (const [cron, named] of [
      ['0 0 0 * *', 'day: 0'],
      ['0 0 32 * *', 'day: 32'],
      ['0 0 1 13 *', 'month: 13'],
      ['60 * * * *', 'minute: 60'],
    ] as const)
      t.match(scheduleFault({ cron })?.message, named, 'the message names the value as written')
  },
)
