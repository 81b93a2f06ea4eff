/** The client's IP address behind reverse proxies, and the part of it that limits count. */
import t from 'tap'
import { createClientAddress } from '../../../nodes/process/client-address.ts'
import { limitedAddress } from '../../../protocol/access/limited-address.ts'

const clientOf = (trusted: string[], peer: string, forwarded: string) =>
  createClientAddress(trusted)?.(peer, forwarded)
const PROXIES = ['10.0.0.0/8', '192.0.2.7', 'fd00::/16']
const behind = (forwarded: string, peer = '10.0.0.1') => clientOf(PROXIES, peer, forwarded)

t.test('without trusted proxies, there is no rule', async (t) => {
  t.equal(createClientAddress([]), undefined)
})

t.test('a header of an untrusted peer is ignored', async (t) => {
  t.equal(behind('203.0.113.1', '198.51.100.1'), '198.51.100.1')
  t.equal(behind('203.0.113.1', '192.0.2.8'), '192.0.2.8')
  const peer = '2001:0db8:0000:0000:0000:0000:0000:0001'
  t.equal(behind('203.0.113.1', peer), peer)
  t.equal(behind('203.0.113.1', ''), '')
})

t.test('the client is the last entry that is not a trusted proxy', async (t) => {
  t.equal(behind('203.0.113.1'), '203.0.113.1')
  t.equal(behind('203.0.113.1', '192.0.2.7'), '203.0.113.1')
  t.equal(behind('203.0.113.1', 'fd00:0000:0000:0000:0000:0000:0000:0001'), '203.0.113.1')
  t.equal(behind('198.51.100.9, 203.0.113.1'), '203.0.113.1', 'the client wrote the first entry')
  t.equal(behind('10.1.1.1,203.0.113.1'), '203.0.113.1', 'also the address of a proxy')
  t.equal(behind('garbage, 203.0.113.1'), '203.0.113.1')
  t.equal(behind('203.0.113.1, 10.2.0.1,192.0.2.7 ,\tfd00::2'), '203.0.113.1', 'several proxies')
  t.equal(behind('198.51.100.9, 203.0.113.1, 10.2.0.1'), '203.0.113.1')
  t.equal(behind('10.3.0.1, 10.2.0.1'), '10.3.0.1', 'a client in the network of the proxies')
  t.equal(behind('203.0.113.1, , ,'), '203.0.113.1', 'empty elements are ignored')
})

t.test('an entry can have a port', async (t) => {
  const long = '2001:0db8:0000:0000:0000:0000:0000:0001'
  t.equal(behind('203.0.113.1:4711'), '203.0.113.1')
  t.equal(behind('[2001:db8::1]:4711'), long)
  t.equal(behind('[2001:DB8::1]'), long)
  t.equal(behind('2001:db8::1'), long)
  t.equal(behind('203.0.113.1:4711, [fd00::2]:80'), '203.0.113.1')
  t.equal(behind('::ffff:203.0.113.1'), '203.0.113.1')
  t.equal(behind('203.0.113.1, ::ffff:10.0.0.9'), '203.0.113.1')
})

t.test('an entry that is not an address ends the search', async (t) => {
  const entries = [
    ...['unknown', '_hidden', 'localhost', '203.0.113', '203.0.113.1.', '203.0.113.256', '1'],
    ...['0x7f.0.0.1', '010.0.0.1', '3405803777', '203.0.113.1:', '203.0.113.1:999999'],
    ...['203.0.113.1 10.0.0.1', '[203.0.113.1]', '[203.0.113.1]:80', '"203.0.113.1"'],
    ...['[2001:db8::1', '2001:db8::1]', '[]', '[]:80', ':', ':::', '2001:db8::1::2', '12345::'],
    ...['fe80::1%eth0', '[fe80::1%eth0]', 'for=203.0.113.1', '203.0.113.0/24', ':'.repeat(5000)],
  ]
  for (const entry of entries) {
    t.equal(behind(entry), '10.0.0.1', entry)
    t.equal(behind(`203.0.113.1, ${entry}`), '10.0.0.1', entry)
    t.equal(behind(`203.0.113.1, ${entry}, 10.2.0.1`), '10.0.0.1', entry)
  }
  for (const empty of ['', ' ', ',', ' , ,']) t.equal(behind(empty), '10.0.0.1', 'no entries')
})

t.test('limits count the /64 network of an IPv6 address', async (t) => {
  const same = [
    '2001:0db8:0000:0001:0000:0000:0000:0001',
    '2001:db8:0:1::',
    '2001:DB8::1:a:b:c:d',
    '2001:db8:0:1:ffff:ffff:ffff:ffff',
    '2001:db8:0:1::192.0.2.1',
  ]
  t.strictSame([...new Set(same.map(limitedAddress))], ['2001:db8:0:1::/64'])
  t.not(limitedAddress('2001:db8:0:2::1'), '2001:db8:0:1::/64')
  t.equal(limitedAddress('::1'), '0:0:0:0::/64')
  t.equal(limitedAddress('64:ff9b::1'), '64:ff9b:0:0::/64')
  t.equal(limitedAddress('203.0.113.1'), '203.0.113.1')
  t.equal(limitedAddress(''), '')
})
