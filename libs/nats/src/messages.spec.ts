import { messageText } from './messages.js';

test.each([
  ['plain text', Buffer.from('{"a":"ä😀"}'), '{"a":"ä😀"}'],
  ['a real replacement character', Buffer.from('a\ufffdb'), 'a\ufffdb'],
  ['an empty payload', Buffer.alloc(0), ''],
  ['Latin-1', Buffer.from([0x61, 0xff, 0x62]), 'a\ud800b'],
  ['a truncated character', Buffer.from('aä').subarray(0, 2), 'a\ud800'],
])('%s is read as it is, or distinguished from any valid text', (_what, data, text) => {
  expect(messageText(data)).toBe(text);
});
