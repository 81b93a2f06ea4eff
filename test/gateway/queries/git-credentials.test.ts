/** The repositories for which an environment gets credentials, and the granted access. */
import fc from 'fast-check'
import t from 'tap'
import { grantOf } from '../../../gateway/queries/git-credentials.ts'

const names = ['acme/app', 'ACME/app', 'acme/lib', 'acme/app.git', '../app']
const declaration = fc.record(
  {
    full_name: fc.constantFrom(...names),
    push: fc.boolean(),
    provider: fc.constantFrom('github', 'gitlab'),
  },
  { requiredKeys: ['full_name', 'push'] },
)

t.test('nothing is granted that is not declared', async () => {
  fc.assert(
    fc.property(
      fc.array(declaration, { maxLength: 5 }),
      fc.constantFrom(...names, 'acme/other', 'acme/app/..'),
      (declared, name) => {
        const grant = grantOf(declared, name)
        const same = declared.filter((one) => one.full_name.toLowerCase() === name.toLowerCase())
        if (!grant) {
          const valid = !/\.git$|\.\./.test(name)
          if (valid && same.length > 0) throw new Error('a declared repository is refused')
          return
        }
        const [first] = same
        if (grant.full_name !== first?.full_name || grant.host !== (first.provider ?? 'github'))
          throw new Error('the first declaration does not decide')
        const push = same.some((one) => one.push && (one.provider ?? 'github') === grant.host)
        if (push !== (grant.access === 'write')) throw new Error(grant.access)
      },
    ),
  )
})
