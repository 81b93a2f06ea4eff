/** Random steps for the model tests that upload artifacts or files of sessions. */
import fc from 'fast-check'

export const uploadSteps = (count: number) => {
  const which = fc.nat({ max: count - 1 })
  return {
    which,
    advance: fc.record({
      do: fc.constant('advance' as const),
      which,
      steps: fc.integer({ min: 1, max: 4 }),
    }),
    crash: fc.record({ do: fc.constant('crash' as const), which }),
    fail: fc.record({ do: fc.constant('fail' as const), which }),
    direct: fc.record({ do: fc.constant('direct' as const), which: fc.nat() }),
    pass: fc.record({ do: fc.constant('pass' as const), minutes: fc.nat({ max: 20 }) }),
  }
}
export const uploadSizes = (count: number) =>
  fc.array(fc.integer({ min: 0, max: 60 }), { minLength: count, maxLength: count })
