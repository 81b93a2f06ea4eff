/** The alert rules fire also when the metric that they compare has no series. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const text = readFileSync(join(import.meta.dirname, '../../docs/alerts.yml'), 'utf8')
const rules = [...text.matchAll(/alert: (\w+)\n(?: +#.*\n)* +expr: (.+)/g)].map(
  ([, name = '', expr = '']) => ({ name, expr }),
)

t.test('a lower bound of an aggregate treats a missing series as 0', async (t) => {
  t.equal(rules.length, text.match(/alert:/g)?.length, 'all rules are read')
  const low = rules.filter(({ expr }) => /^\(?(?:sum|count)\b.*<=? *\d+$/.test(expr))
  t.match(low, [{ name: 'BatonShardsWithoutOwner' }])
  for (const { name, expr } of low) t.match(expr, /^\(.+ or vector\(0\)\) </, name)
})
