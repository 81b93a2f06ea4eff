/** Checks of the resolver configuration and of return origins that their schemas cannot express. */
import t from 'tap'
import {
  checkOrigins,
  checkResolver,
  originsOf,
  resolverLimits,
} from '../../../protocol/resolver/schema.ts'

t.test('a client resolver needs an https endpoint', async (t) => {
  const faults = (endpoint_url?: string, source = 'client_resolver') =>
    checkResolver({ source, ...(endpoint_url !== undefined && { endpoint_url }) })
  t.match(faults(), [{ field: 'endpoint_url' }])
  t.strictSame(faults(undefined, 'stored'), [])
  t.strictSame(faults('https://resolver.example/x?tenant=1'), [])
  for (const url of [
    'http://resolver.example',
    'resolver.example',
    'https://u:p@resolver.example',
    'https://resolver.example/#x',
    'ftp://resolver.example',
    '',
  ])
    t.match(faults(url), [{ field: 'endpoint_url' }], url)
  t.match(faults('http://resolver.example', 'stored'), [{ field: 'endpoint_url' }])
})

t.test('only exact https origins are accepted', async (t) => {
  for (const origin of [
    'http://a.example',
    'https://a.example/',
    'https://a.example/path',
    'https://a.example?x',
    'https://a.example#x',
    'https://u@a.example',
    'https://*.example',
    'https://a.example:',
    'https://a.example:99999',
    'https://',
    'https://a b',
    'a.example',
    '*',
  ])
    t.match(checkOrigins({ origins: ['https://ok.example', origin] }), [
      { field: 'origins[1]', actual: origin },
    ])
  t.strictSame(originsOf(['HTTPS://A.Example', 'https://[::1]:444', 'https://bücher.example']), [
    'https://a.example',
    'https://[::1]:444',
    'https://xn--bcher-kva.example',
  ])
})

t.test('duplicates do not count towards the limit', async (t) => {
  const origins = Array.from(
    { length: resolverLimits.origins },
    (_, index) => `https://a${index}.example`,
  )
  t.strictSame(checkOrigins({ origins: [...origins, ...origins] }), [])
  t.match(checkOrigins({ origins: [...origins, 'https://more.example'] }), [
    { field: 'origins', actual: resolverLimits.origins + 1 },
  ])
})
