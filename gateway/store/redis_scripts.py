"""The Lua that runs inside Redis: each script is one atomic step within one conversation's keys;
only the one of lists reads several.

Layout. `tk:{conversation}` is a hash (token, nonce, number, owner, expires, seen, last, work, at,
row, listed, epoch, lineage, doubt, earlier; going, begun, bound while it is removed); its other
keys begin with the same hash tag, so they share a slot and scripts derive their names: `:waiting`
(zset of seq), `:in` (seq → "at json"), `:letters` (id → dead letter), `:live` (open turns →
status), `:turns`, `:r:<turn>` (n → record), `:views` (bodies) with the zsets `:rev`, `:pos`,
`:o:<turn>` and the set `:unsent`, `:questions` with the set `:open`, `:transcript` with the zset
`:n`, `:audit` (lines on their way to the global list), `:e:<key>` (seen events, 24 h). Bodies are
opaque strings: never decoded here. A script checks everything before it writes anything, since
Redis rolls nothing back.

Time is the server's: a lease runs out by one clock, whoever asks. Callers give durations; `at` and
the times of rows are for people, and stay the caller's.

`listed` = 1: the conversation is in the global zset `tk:active` with a score of at least `epoch`.
What makes work (accept, acquire, resubmit) is refused with 'unlisted' until its caller has added
the conversation under the present epoch; what ends work raises the epoch, and then the entry may
be removed if its score is below. So no crash and no race leaves work that the scan cannot see.
"""

import hashlib
from collections.abc import Sequence

HINTS = "tk:hints"

_CHECKS = """
local function unlisted(k, given)
  local h = redis.call('HMGET', k, 'listed', 'epoch')
  local epoch = h[2] or '0'
  if h[1] ~= '1' and given ~= epoch then return {'unlisted', epoch} end
end
local function behind(k, seq)
  local last = tonumber(redis.call('HGET', k, 'last') or '0')
  if tonumber(seq) <= last then return {'again', last} end
end
"""

_TIME = """
local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1000000
end
"""

# ARGV: conversation, now, epoch, then (seq, event, message, body) for each
ACCEPT = f"""#!lua
{_CHECKS}
local k, now, fresh, seqs, mine = KEYS[1], ARGV[2], {{}}, {{}}, {{}}
for i = 4, #ARGV, 4 do
  local seq, known = ARGV[i], false
  for j = 1, 2 do
    local key = ARGV[i + j]
    local held = key ~= '' and (mine[key] or redis.call('GET', k .. ':e:' .. key))
    if held then known = held end
  end
  if known == seq then
    seqs[#seqs + 1] = seq -- a repeated call whose reply was lost
  elseif known then
    seqs[#seqs + 1] = '0'
  else
    seqs[#seqs + 1] = seq
    fresh[#fresh + 1] = i
    mine[ARGV[i + 1]] = seq
    if ARGV[i + 2] ~= '' then mine[ARGV[i + 2]] = seq end
  end
end
if #fresh == 0 then return {{'kept', seqs}} end
local refused = unlisted(k, ARGV[3])
if refused then return refused end
local low, last = behind(k, ARGV[fresh[1]])
if low then return low end
for _, i in ipairs(fresh) do
  last = ARGV[i]
  redis.call('ZADD', k .. ':waiting', last, last)
  redis.call('HSET', k .. ':in', last, now .. ' ' .. ARGV[i + 3])
end
for key, seq in pairs(mine) do redis.call('SET', k .. ':e:' .. key, seq, 'EX', 86400) end
redis.call('HSET', k, 'last', last, 'at', now, 'listed', 1)
redis.call('PUBLISH', '{HINTS}', ARGV[1])
return {{'kept', seqs}}
"""

# ARGV: conversation, letter, new seq, epoch, body. A message waits again.
RESUBMIT = f"""#!lua
{_CHECKS}
local k = KEYS[1]
if redis.call('HEXISTS', k .. ':letters', ARGV[2]) + redis.call('HEXISTS', k .. ':dead', ARGV[2])
  == 0 then -- perhaps a repeated call whose reply was lost
  return {{redis.call('HEXISTS', k .. ':in', ARGV[3]) == 1 and 'kept' or 'none'}}
end
if redis.call('HEXISTS', k, 'going') == 1 then return {{'none'}} end -- it goes with the letter
local refused = unlisted(k, ARGV[4])
if refused then return refused end
local low = behind(k, ARGV[3])
if low then return low end
redis.call('HDEL', k .. ':letters', ARGV[2])
redis.call('HDEL', k .. ':dead', ARGV[2])
redis.call('HSET', k .. ':in', ARGV[3], ARGV[5])
redis.call('ZADD', k .. ':waiting', ARGV[3], ARGV[3])
redis.call('HSET', k, 'last', ARGV[3], 'listed', 1)
redis.call('PUBLISH', '{HINTS}', ARGV[1])
return {{'kept'}}
"""

# ARGV: conversation, letter, kind, name, epoch, body. Another row counts as work again.
REVIVE = f"""#!lua
{_CHECKS}
local k, name = KEYS[1], ARGV[4]
if redis.call('HEXISTS', k .. ':letters', ARGV[2]) == 0
  or redis.call('HEXISTS', k, 'going') == 1 then return {{'none'}} end
local refused = unlisted(k, ARGV[5])
if refused then return refused end
redis.call('HDEL', k .. ':letters', ARGV[2])
if ARGV[3] == 'turn' then
  redis.call('HSET', k .. ':turns', name, ARGV[6])
  redis.call('HSET', k .. ':live', name, 'running')
  redis.call('PERSIST', k .. ':r:' .. name)
elseif ARGV[3] == 'view' then
  redis.call('HSET', k .. ':views', name, ARGV[6])
  redis.call('SADD', k .. ':unsent', name)
else
  redis.call('SADD', k .. ':open', name)
end
redis.call('HSET', k, 'work', 1, 'listed', 1)
redis.call('PUBLISH', '{HINTS}', ARGV[1])
return {{'kept'}}
"""

# ARGV: owner, nonce, caller's time, ttl, epoch; the server's lineage, the row up to which holders
# may be forgotten since, and the token and number of a lease of the caller: if it has not run out
# and lacks nothing, there was no other. What was forgotten is in doubt until the conversation is
# released.
ACQUIRE = f"""#!lua
{_CHECKS}
{_TIME}
local k = KEYS[1]
local h = redis.call('HMGET', k, 'token', 'owner', 'expires', 'nonce', 'crashed', 'row',
  'last', 'going', 'lineage', 'doubt', 'number', 'earlier')
local token, crashed, doubt, number = h[1] or '0', h[5], h[10] or '0', '-1'
if h[2] == ARGV[1] and tonumber(h[3]) > clock() then number = h[11] end
local again = h[2] and h[4] == ARGV[2] -- its reply was lost, or the lineage is another by now
if not again then
  if h[2] and h[2] ~= ARGV[1] and tonumber(h[3]) > clock() then return {{'held'}} end
  if h[8] then return {{'held'}} end -- it is being removed
  local refused = unlisted(k, ARGV[5])
  if refused then return refused end
end
if h[9] ~= ARGV[6] then
  local before = tonumber(token)
  if again then before, number = before - 1, h[12] end
  local whole = before == tonumber(ARGV[8]) and tonumber(number or '-1') >= tonumber(ARGV[9])
  doubt = whole and doubt or ARGV[7]
  redis.call('HSET', k, 'lineage', ARGV[6], 'doubt', doubt)
end
if not again then
  token = redis.call('HINCRBY', k, 'token', 1)
  crashed = h[2] and '1' or '0'
  redis.call('HSET', k, 'owner', ARGV[1], 'nonce', ARGV[2], 'expires',
    clock() + tonumber(ARGV[4]), 'number', 0, 'work', 1,
    'listed', 1, 'crashed', crashed, 'earlier', number or -1)
  redis.call('HSETNX', k, 'at', ARGV[3])
end
local function bodies(hash, ids) -- id, body, id, body …
  local found = {{}}
  for _, id in ipairs(ids) do
    found[#found + 1] = id
    found[#found + 1] = redis.call('HGET', k .. hash, id) or ''
  end
  return found
end
local seqs = redis.call('ZRANGE', k .. ':waiting', 0, -1)
return {{'taken', tonumber(token), {{h[7] or '0', crashed, h[6] or '', doubt}}, bodies(':in', seqs),
  bodies(':turns', redis.call('HKEYS', k .. ':live')),
  bodies(':views', redis.call('SMEMBERS', k .. ':unsent')),
  bodies(':questions', redis.call('SMEMBERS', k .. ':open')),
  redis.call('HGETALL', k .. ':audit')}}
"""

# ARGV: token, nonce, number, seen ('': no release), then operations of fixed length.
# Numbers of one lease have no gaps: a repeated one has been done, after a failed one none passes.
COMMIT = """#!lua
local k = KEYS[1]
local h = redis.call('HMGET', k, 'token', 'nonce', 'number', 'owner', 'epoch', 'last', 'outcome')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then
  local lost = tonumber(h[1] or '0') <= tonumber(ARGV[1]) -- a token is given once, else it is gone
  return {lost and 'lost' or 'fenced', 0}
end
local number, done, epoch = tonumber(ARGV[3]), tonumber(h[3]), tonumber(h[5] or '0')
if number < done then return {ARGV[4] == '' and 'kept' or 'held', 0} end
if number == done then return {h[7], epoch - 1} end
if not h[4] then return {'fenced', 0} end
if number > done + 1 then return {'gap', 0} end

local length = {r = 3, t = 4, d = 1, u = 1, l = 4, v = 6, q = 3, s = 2, c = 1, a = 2}
local function each(visit)
  local i = 5
  while i <= #ARGV do
    visit(ARGV[i], i + 1)
    i = i + 1 + length[ARGV[i]]
  end
end

local kinds = {
  t = {[':turns'] = 'hash', [':live'] = 'hash'},
  d = {[':in'] = 'hash', [':waiting'] = 'zset'},
  l = {[':letters'] = 'hash', [':in'] = 'hash', [':waiting'] = 'zset', [':live'] = 'hash',
    [':unsent'] = 'set', [':open'] = 'set'},
  v = {[':views'] = 'hash', [':rev'] = 'zset', [':pos'] = 'zset', [':unsent'] = 'set'},
  q = {[':questions'] = 'hash', [':open'] = 'set'},
  s = {[':transcript'] = 'hash', [':n'] = 'zset'},
  a = {[':audit'] = 'hash'},
}
local seen = {}
local function is_damaged(part, kind) -- found before anything is written: nothing is taken back
  if seen[part] then return false end
  seen[part] = true
  local found = redis.pcall('TYPE', k .. part)['ok'] or 'none' -- some users may not ask
  return found ~= 'none' and found ~= kind
end
local damaged = is_damaged(':live', 'hash')
each(function(op, i)
  for part, kind in pairs(kinds[op] or {}) do damaged = is_damaged(part, kind) or damaged end
  if op == 'r' then damaged = is_damaged(':r:' .. ARGV[i], 'hash') or damaged end
  if op == 'v' then damaged = is_damaged(':o:' .. ARGV[i], 'zset') or damaged end
end)
if damaged then return {'damaged', 0} end

local new, clash = {}, false
each(function(op, i)
  local key, field
  if op == 'r' then key, field = k .. ':r:' .. ARGV[i], ARGV[i + 1] end
  if op == 's' then key, field = k .. ':transcript', ARGV[i] end
  if key then
    local name = key .. ' ' .. field
    clash = clash or new[name] or redis.call('HEXISTS', key, field) == 1
    new[name] = true
  end
end)
if clash then return {'clash', 0} end

local write = {
  r = function(i) redis.call('HSET', k .. ':r:' .. ARGV[i], ARGV[i + 1], ARGV[i + 2]) end,
  t = function(i)
    local id, status, records = ARGV[i], ARGV[i + 1], k .. ':r:' .. ARGV[i]
    redis.call('HSET', k .. ':turns', id, ARGV[i + 2])
    if status == 'running' or status == 'parked' then
      redis.call('HSET', k .. ':live', id, status)
      redis.call('PERSIST', records)
    else
      redis.call('HDEL', k .. ':live', id)
      if ARGV[i + 3] ~= '' then redis.call('EXPIRE', records, ARGV[i + 3]) end -- '': for ever
    end
  end,
  d = function(i)
    redis.call('HDEL', k .. ':in', ARGV[i])
    redis.call('ZREM', k .. ':waiting', ARGV[i])
  end,
  u = function(i) redis.call('DEL', k .. ':e:' .. ARGV[i]) end,
  l = function(i) -- id, kind, name, body
    local kind, name = ARGV[i + 1], ARGV[i + 2]
    redis.call('HSET', k .. ':letters', ARGV[i], ARGV[i + 3])
    if kind == 'message' then
      redis.call('HDEL', k .. ':in', name)
      redis.call('ZREM', k .. ':waiting', name)
    elseif kind == 'turn' then
      redis.call('HDEL', k .. ':live', name)
      redis.call('PERSIST', k .. ':r:' .. name) -- as long as the letter: it may go on
    elseif kind == 'view' then
      redis.call('SREM', k .. ':unsent', name)
    elseif kind == 'question' then
      redis.call('SREM', k .. ':open', name)
    end
  end,
  v = function(i) -- turn, name, rev, position, unsent, body
    local id = ARGV[i] .. ' ' .. ARGV[i + 1]
    redis.call('HSET', k .. ':views', id, ARGV[i + 5])
    redis.call('ZADD', k .. ':rev', ARGV[i + 2], id)
    redis.call('ZADD', k .. ':pos', ARGV[i + 3], id)
    redis.call('ZADD', k .. ':o:' .. ARGV[i], ARGV[i + 3], id)
    redis.call(ARGV[i + 4] == '1' and 'SADD' or 'SREM', k .. ':unsent', id)
  end,
  q = function(i)
    redis.call('HSET', k .. ':questions', ARGV[i], ARGV[i + 2])
    redis.call(ARGV[i + 1] == 'open' and 'SADD' or 'SREM', k .. ':open', ARGV[i])
  end,
  s = function(i)
    redis.call('HSET', k .. ':transcript', ARGV[i], ARGV[i + 1])
    redis.call('ZADD', k .. ':n', ARGV[i], ARGV[i])
    redis.call('UNLINK', k .. ':thread') -- of a version that kept the rows once more in one value
  end,
  c = function(i) redis.call('HSET', k, 'row', ARGV[i]) end,
  a = function(i) redis.call('HSET', k .. ':audit', ARGV[i], ARGV[i + 1]) end,
}
each(function(op, i) write[op](i) end)

local outcome = 'kept'
if ARGV[4] ~= '' then
  local busy = tonumber(h[6] or '0') > tonumber(ARGV[4])
    or redis.call('EXISTS', k .. ':unsent') == 1
  for _, status in ipairs(redis.call('HVALS', k .. ':live')) do
    busy = busy or status == 'running'
  end
  outcome = busy and 'held' or 'released'
  if not busy then
    redis.call('HDEL', k, 'owner', 'doubt')
    redis.call('HSET', k, 'expires', 0, 'work', 0, 'seen', ARGV[4], 'listed', 0,
      'epoch', epoch + 1)
  end
end
redis.call('HSET', k, 'number', ARGV[3], 'outcome', outcome)
return {outcome, epoch}
"""

# ARGV: token, nonce, ttl ('': give back, and say so to all replicas), conversation, then lineage
# and number as for ACQUIRE: a lease that is given back whole leaves nothing in doubt. 1: it is
# held; 0: it is another's; -1: the server does not know of it (a failover took it away).
HOLD = f"""#!lua flags=allow-oom
{_TIME}
local h = redis.call('HMGET', KEYS[1], 'token', 'nonce', 'owner', 'number', 'expires')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then
  return tonumber(h[1] or '0') <= tonumber(ARGV[1]) and -1 or 0
end
if not h[3] then return 0 end
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[1], 'expires', clock() + tonumber(ARGV[3]))
else
  if tonumber(h[4]) >= tonumber(ARGV[6]) and tonumber(h[5]) > clock() then
    redis.call('HSET', KEYS[1], 'lineage', ARGV[5])
  end
  redis.call('HDEL', KEYS[1], 'owner')
  redis.call('HSET', KEYS[1], 'expires', 0)
  redis.call('PUBLISH', '{HINTS}', ARGV[4])
end
return 1
"""

# ARGV: owner. {1, last}: its own, or free; {0}: another's; {-1, epoch}: no work, unlisted.
LOOK = f"""#!lua flags=allow-oom
{_TIME}
local h = redis.call('HMGET', KEYS[1], 'work', 'last', 'seen', 'owner', 'expires', 'epoch')
local last = tonumber(h[2] or '0')
if h[1] ~= '1' and last <= tonumber(h[3] or '0') then
  local epoch = tonumber(h[6] or '0')
  redis.call('HSET', KEYS[1], 'listed', 0, 'epoch', epoch + 1)
  return {{-1, epoch}}
end
if h[4] and h[4] ~= ARGV[1] and tonumber(h[5]) > clock() then
  -- no lease is that long: the clock was set back, or is another server's. A holder that lives
  -- renews it in time.
  if tonumber(h[5]) > clock() + 60 then redis.call('HSET', KEYS[1], 'expires', clock() + 30) end
  return {{0, 0}}
end
return {{1, last}}
"""

# ARGV: nonce, milliseconds (0: let go). 0 if another holds it.
KEEP = """#!lua flags=allow-oom
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1
"""

# ARGV: the server's lineage, the newest inbox row, the caller's replica ('': none). With another
# lineage than before, all replicas count as those who were there before, for an hour at least.
SUCCEED = f"""#!lua flags=allow-oom
{_TIME}
local k, now = KEYS[1], clock()
local before = redis.call('HGET', k, 'id')
if before ~= ARGV[1] then
  local flat = redis.call('HGETALL', k)
  for i = 1, #flat, 2 do
    local name = string.match(flat[i], '^here (.*)')
    if name then
      redis.call('HDEL', k, flat[i])
      redis.call('HSET', k, 'was ' .. name, now)
    elseif string.match(flat[i], '^was ') and tonumber(flat[i + 1]) < now - 3600 then
      redis.call('HDEL', k, flat[i])
    end
  end
  redis.call('HSET', k, 'id', ARGV[1], 'seq', before and ARGV[2] or 0)
end
if ARGV[3] ~= '' then redis.call('HSET', k, 'here ' .. ARGV[3], now) end
return redis.call('HGETALL', k)
"""

# ARGV: number. A number only rises.
RAISE = """#!lua
if tonumber(redis.call('GET', KEYS[1]) or '0') < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1])
end
return 1
"""

# ARGV: member, bound, new score ('': remove). Does nothing if the score is above `bound`.
MOVE = """#!lua flags=allow-oom
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) > tonumber(ARGV[2]) then return 0 end
if ARGV[3] == '' then redis.call('ZREM', KEYS[1], ARGV[1])
else redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1]) end
return 1
"""

# ARGV: nonce, key, '1' or '0' (remove), body, then optionally what is expected
PUT = """#!lua
local once = KEYS[1] .. ':once:' .. ARGV[1]
local before = redis.call('GET', once)
if before then return tonumber(before) end
local same = #ARGV < 5 or (redis.call('HGET', KEYS[1], ARGV[2]) or '') == ARGV[5]
if same and ARGV[3] == '1' then
  redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
  redis.call('ZADD', KEYS[1] .. ':names', 0, ARGV[2])
end
if same and ARGV[3] == '0' then
  redis.call('HDEL', KEYS[1], ARGV[2])
  redis.call('ZREM', KEYS[1] .. ':names', ARGV[2])
end
redis.call('SET', once, same and 1 or 0, 'EX', 60)
return same and 1 or 0
"""

# ARGV: zset, hash, lowest, highest, limit. Flat: id, body, id, body …
RANGE = """#!lua flags=no-writes
local found = {}
local ids = redis.call('ZRANGE', KEYS[1] .. ARGV[1], ARGV[3], ARGV[4], 'BYSCORE',
  'LIMIT', 0, ARGV[5])
for start = 1, #ids, 1000 do
  local bodies = redis.call('HMGET', KEYS[1] .. ARGV[2],
    unpack(ids, start, math.min(start + 999, #ids)))
  for n, body in ipairs(bodies) do
    found[#found + 1] = ids[start + n - 1]
    found[#found + 1] = body
  end
end
return found
"""

# ARGV: zset, hash, first, last. Bodies of the members at these places, the highest score first.
LAST = """#!lua flags=no-writes
local ids = redis.call('ZRANGE', KEYS[1] .. ARGV[1], ARGV[3], ARGV[4], 'REV')
if #ids == 0 then return {} end
return redis.call('HMGET', KEYS[1] .. ARGV[2], unpack(ids))
"""

# ARGV: the list's key and its bodies', a score, how many. The bodies of the last ones below it.
BEFORE = """#!lua flags=no-writes
local ids = redis.call('ZRANGE', KEYS[1] .. ARGV[1], ARGV[3], '-inf', 'BYSCORE', 'REV',
  'LIMIT', 0, ARGV[4])
if #ids == 0 then return {} end
return redis.call('HMGET', KEYS[1] .. ARGV[2], unpack(ids))
"""

# KEYS: some conversations. ARGV: how many views. What a list says of each: its fields `at`, `owner`
# and `row`, the states of its open turns, the bodies of its newest views; nothing if it is not
# there.
SUMMARIZE = """#!lua flags=no-writes
local found = {}
for i, k in ipairs(KEYS) do
  local fields = redis.call('HMGET', k, 'at', 'owner', 'row')
  found[i] = {}
  if fields[1] then
    local live = redis.call('HVALS', k .. ':live')
    local ids = {}
    if ARGV[1] ~= '0' then ids = redis.call('ZRANGE', k .. ':pos', 0, ARGV[1] - 1, 'REV') end
    local bodies = #ids > 0 and redis.call('HMGET', k .. ':views', unpack(ids)) or {}
    found[i] = {fields, live, bodies}
  end
end
return found
"""

# ARGV: nonce, seconds it is kept, then (account, amount, limit) for each, in whole numbers; a limit
# of 0 is none. All are added or none; the place of the first that would pass its limit, else 0.
SPEND = """#!lua
local k = KEYS[1]
local once = k .. ':once:' .. ARGV[1]
local before = redis.call('GET', once)
if before then return tonumber(before) end
local refused = 0
for i = 3, #ARGV, 3 do
  local limit = tonumber(ARGV[i + 2])
  local there = tonumber(redis.call('HGET', k, ARGV[i]) or '0')
  if refused == 0 and limit > 0 and there + tonumber(ARGV[i + 1]) > limit then
    refused = (i - 3) / 3 + 1
  end
end
if refused == 0 then
  for i = 3, #ARGV, 3 do
    local sum = redis.call('HINCRBY', k, ARGV[i], ARGV[i + 1])
    if sum < 0 then redis.call('HSET', k, ARGV[i], 0) end
  end
  redis.call('EXPIRE', k, ARGV[2])
end
redis.call('SET', once, refused, 'EX', 60)
return refused
"""

# ARGV: seconds it is kept, then (account, amount) for each: what was spent before there was this
# hash, once
CARRY = """#!lua
if redis.call('HSETNX', KEYS[1], '', 1) == 0 then return 0 end
for i = 2, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return 1
"""

ALL = (
    ACCEPT,
    RESUBMIT,
    REVIVE,
    ACQUIRE,
    COMMIT,
    HOLD,
    LOOK,
    KEEP,
    SUCCEED,
    RAISE,
    MOVE,
    PUT,
    RANGE,
    LAST,
    BEFORE,
    SUMMARIZE,
    SPEND,
    CARRY,
)
COMMANDS = (
    *("HGET", "HMGET", "HVALS", "HKEYS", "HGETALL", "HEXISTS", "HSET", "HSETNX", "HDEL", "HINCRBY"),
    *("ZADD", "ZREM", "ZRANGE", "ZSCORE", "SADD", "SREM", "SMEMBERS", "GET", "SET", "DEL"),
    *("UNLINK", "EXISTS", "EXPIRE", "PERSIST", "PUBLISH", "TIME"),
)
_CHECK = """for _, name in ipairs({%s}) do
  local on = name == 'PUBLISH' and '%s' or KEYS[1]
  if not redis.acl_check_cmd(name, on) then
    return redis.error_reply('NOPERM the user of REDIS_URL may not run ' .. name)
  end
end
"""


def _guard(source: str) -> str:
    """Return the script with a check that its user may run all of its commands: a script refused
    in the middle leaves half of its writes behind."""
    used = ", ".join(f"'{name}'" for name in COMMANDS if f"'{name}'" in source)
    head, _, body = source.partition("\n")
    return f"{head}\n{_CHECK % (used, HINTS)}{body}"


TEXTS = {source: _guard(source) for source in ALL}
"""The scripts with their checks, as sent to the server."""
_SHA = {
    source: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    for source, text in TEXTS.items()
}


def run(
    source: str, key: str, *args: str | bytes | int | float
) -> tuple[str | bytes | int | float, ...]:
    """The command that runs a script on `key`."""
    return run_on(source, (key,), *args)


def run_on(
    source: str, keys: Sequence[str], *args: str | bytes | int | float
) -> tuple[str | bytes | int | float, ...]:
    """The command that runs a script on several keys."""
    return "EVALSHA", _SHA[source], len(keys), *keys, *args
