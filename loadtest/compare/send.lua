-- The requests of wrk: lua send.lua -- PATH lines FILE LINE_BYTES [ID_PREFIX], or PATH pieces FILE PIECE_BYTES ID_PREFIX.
-- `lines` sends the lines of FILE one after another. All lines have the same length. If there is a prefix, each request
-- gets a new id that begins with it. `pieces` sends documents with new ids; each text consists of ten random pieces.
-- With the environment variable HAPAX_PAUSE_MS, a connection waits before each request, so many milliseconds on average.
local ffi = require("ffi")
ffi.cdef[[
int open(const char *path, int flags, ...);
long lseek(int file, long offset, int from);
void *mmap(void *at, size_t length, int allow, int flags, int file, long offset);
]]

local head, base, length, count, prefix, next_id
local n = 0

local function map(path)
  local file = ffi.C.open(path, 0)
  assert(file >= 0, "cannot open " .. path)
  local bytes = tonumber(ffi.C.lseek(file, 0, 2))
  return ffi.cast("const char *", ffi.C.mmap(nil, bytes, 1, 2, file, 0)), bytes
end

local function line()
  local body = ffi.string(base + (n % count) * length, length - 1)
  n = n + 1
  return head .. body
end

local function line_with_id()
  local rest = ffi.string(base + (n % count) * length + 1, length - 2)
  n = n + 1
  return head .. string.format('{"id":"%s%012d",', prefix, n) .. rest
end

local random = math.random
local function piece()
  return ffi.string(base + random(0, count - 1) * length, length - 1)
end

local function pieces()
  n = n + 1
  return table.concat({ head, string.format('{"id":"%s%012d","text":"', prefix, n), piece(), piece(), piece(), piece(),
    piece(), piece(), piece(), piece(), piece(), piece(), '"}' })
end

function init(args)
  local path, kind, file = args[1], args[2], args[3]
  length, prefix = tonumber(args[4]), args[5]
  local bytes
  base, bytes = map(file)
  count = math.floor(bytes / length)
  math.randomseed(#(prefix or "") > 0 and tonumber((prefix:gsub("%D", ""))) or 1)
  local id = prefix and #prefix + 12 + #'{"id":"",' or 0
  local body = length - 1
  request = line
  if kind == "pieces" then
    body, request = 10 * (length - 1) + #prefix + 12 + #'{"id":"","text":""}', pieces
  elseif prefix then
    body, request = id + length - 2, line_with_id
  end
  head = "POST " .. path .. " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: " .. body
    .. "\r\n\r\n"
end

local pause_ms = tonumber(os.getenv("HAPAX_PAUSE_MS"))
if pause_ms then
  function delay()
    return math.random(0, 2 * pause_ms)
  end
end
