/** The summaries of results in the records of action calls. */
import t from 'tap'
import { summaryOf } from '../../../views/tables/actions/invocations.ts'

t.test('the summary of a result is an object, even if it was truncated', async (t) => {
  t.strictSame(summaryOf({ sent: 3 }), { sent: 3 })
  const long = { text: 'x'.repeat(2000) }
  const summary = summaryOf(long)
  t.match(summary, { truncated: true, text: /^\{"text":"x+$/ })
  t.equal(String(summary['text']).length, 1000)
})
