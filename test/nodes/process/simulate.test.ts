/** The numbers that `baton simulate` and `baton chaos` receive as options. */
import t from 'tap'
import { runSimulations } from '../../../nodes/commands/simulate.ts'
import { wholeNumber } from '../../../nodes/commands/whole-number.ts'
import { StartFault } from '../../../nodes/process/fault.ts'

const standard = { seeds: '1', from: '1', failures: '1', lines: '40' }

t.test('a simulation that would run nothing is refused', async (t) => {
  for (const [option, message] of [
    [{ seeds: 'abc' }, /^--seeds is "abc": it must be a whole number from 1 to /],
    [{ seeds: '0' }, /^--seeds is "0": /],
    [{ seeds: '5', from: 'x' }, /^--from is "x": it must be a whole number from 0 to /],
    [{ failures: '0' }, /^--failures is "0": it must be a whole number from 1 to /],
    [{ lines: '1.5' }, /^--lines is "1.5": /],
    [{ jobs: '' }, /^--jobs is "": /],
  ] as const)
    await t.rejects(runSimulations({ ...standard, ...option }), { name: 'StartFault', message })
})

t.test('a number outside of its range is a fault with an example', async (t) => {
  t.equal(wholeNumber('chaos', 'seconds', '5', 5, 10), 5)
  t.equal(wholeNumber('chaos', 'seconds', '10', 5, 10), 10)
  for (const text of ['4', '11', '-5', '5.5', ' ', 'NaN', 'Infinity'])
    t.throws(() => wholeNumber('chaos', 'seconds', text, 5, 10), StartFault, text)
  t.throws(() => wholeNumber('simulate', 'seeds', 'x', 1, 9), {
    message:
      '--seeds is "x": it must be a whole number from 1 to 9, ' +
      'such as npm run simulate -- --seeds 2',
  })
})
