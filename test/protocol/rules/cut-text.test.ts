/** Texts that are shortened: nothing is left of a grapheme that does not fit. */
import t from 'tap'
import { cut } from '../../../protocol/naming.ts'
import { cutText } from '../../../protocol/rules/cut-text.ts'

t.test('a text is cut between graphemes', async (t) => {
  const family = '👨\u200d👩\u200d👧'
  const accented = 'e\u0301'
  const flag = '🇩🇪'
  t.equal(cutText('short', 5), 'short')
  t.equal(cutText('plain text', 5), 'plain')
  for (const grapheme of ['👍', family, accented, flag, '👍🏽', 'हि'])
    for (const before of ['a', 'a'.repeat(200), flag.repeat(10)]) {
      const text = `${before}${grapheme}b`
      for (let max = before.length; max < before.length + grapheme.length; max++)
        t.equal(cutText(text, max), before, `${grapheme} at ${max - before.length}`)
      t.equal(cutText(text, before.length + grapheme.length), before + grapheme)
    }
})
t.test('of a grapheme without an end, whole code points remain', async (t) => {
  const marks = `e${'\u0301'.repeat(300)}`
  t.equal(cutText(marks, 100), marks.slice(0, 100))
  t.equal(cutText('👨\u200d👩\u200d👧', 4), '👨\u200d')
  t.equal(cutText('👍👍', 1), '')
})
t.test('names are cut by code points, between graphemes', async (t) => {
  t.equal(cut('👍👍👍', 2), '👍👍')
  t.equal(cut(`abce\u0301`, 4), 'abc')
})
